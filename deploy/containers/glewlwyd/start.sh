#!/bin/sh
# An empty database with one key for the administration API, then glewlwyd itself.
set -eu
hash=$(printf '%s' "${GLEWLWYD_API_KEY:?}" | openssl dgst -sha512 -binary | openssl base64 -A | tr '+/' '-_')
rm -f /tmp/glewlwyd.db
sqlite3 /tmp/glewlwyd.db </usr/share/dbconfig-common/data/glewlwyd/install/sqlite3
# Left alone it invents a subject for each user; the address that deletes a user knows them by their user name.
sqlite3 /tmp/glewlwyd.db "
  INSERT INTO g_api_key (gak_token_hash, gak_username) VALUES ('{SHA512}$hash', 'platform');
  CREATE TRIGGER subject_is_user_name AFTER INSERT ON g_user BEGIN
    INSERT INTO gpo_subject_identifier (gposi_plugin_name, gposi_username, gposi_sub) VALUES ('oidc', NEW.gu_username, NEW.gu_username);
  END;"
exec glewlwyd --config-file=/opt/glewlwyd/glewlwyd.conf
