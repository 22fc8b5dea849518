#!/bin/sh
# The part of the public image's entry point that docker-compose.yml relies on: POSTGRES_USER, _DB and _PASSWORD[_FILE].
# As there, the container's own socket and loopback need no password and everybody else does.
set -eu
if [ "$1" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
  umask 077
  [ -n "${POSTGRES_PASSWORD_FILE:-}" ] && POSTGRES_PASSWORD=$(cat "$POSTGRES_PASSWORD_FILE")
  printf '%s' "${POSTGRES_PASSWORD:?}" >/tmp/password
  initdb --username="${POSTGRES_USER:-postgres}" --pwfile=/tmp/password --auth=trust >/dev/null 2>&1
  rm /tmp/password
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  pg_ctl start --wait --options="-c listen_addresses='' -c unix_socket_directories=/tmp" >/dev/null
  createdb --host=/tmp --username="${POSTGRES_USER:-postgres}" \
    "${POSTGRES_DB:-${POSTGRES_USER:-postgres}}" 2>/dev/null || true
  pg_ctl stop --wait --mode=fast >/dev/null
fi
[ "$1" = postgres ] && shift && set -- postgres -c listen_addresses='*' "$@"
exec "$@"
