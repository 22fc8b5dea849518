#!/bin/sh
# Turns a folder of secrets, one file per variable, into the environment of the one process that follows. A variable that
# is set already stays as it is.
# Without the folder (as in Kubernetes, where the variables are there already) it only starts the process.
set -eu
for file in "${TIP_ENVIRONMENT:-/run/tip/environment}"/*; do
  name=${file##*/}
  if [ -f "$file" ] && [ -z "$(printenv "$name" || true)" ]; then export "$name=$(cat "$file")"; fi
done
exec "$@"
