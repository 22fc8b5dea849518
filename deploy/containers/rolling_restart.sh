#!/usr/bin/env bash
# Restarts the replicas of services one after the other, each ready before the next one stops:
#
#   deploy/containers/rolling_restart.sh identity accounts
#
# With two or more replicas nobody is refused; a single one is away for as long as it takes to start.
# COMPOSE_PROJECT_NAME says which platform is meant when there are several.
set -euo pipefail
PROJECT=${COMPOSE_PROJECT_NAME:-$(basename "$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)")}
GRACE_SECONDS=10
READY_SECONDS=300
KILLED=137

ready() { docker exec "$1" python -IS /opt/tip/containers/health.py >/dev/null 2>&1; }

restart() {
  local name how=restarted deadline
  name=$(docker inspect --format '{{.Name}}' "$1")
  docker stop --time $GRACE_SECONDS "$1" >/dev/null
  [ "$(docker inspect --format '{{.State.ExitCode}}' "$1")" != $KILLED ] || how="restarted, and had to be killed after $GRACE_SECONDS s"
  docker start "$1" >/dev/null
  deadline=$((SECONDS + READY_SECONDS))
  until ready "$1"; do
    [ $SECONDS -lt $deadline ] || { echo "${name#/} is not ready after $READY_SECONDS s: stopping here" >&2; exit 1; }
    sleep 0.3
  done
  sleep 1.2 # the ingress resolves addresses once a second
  echo "${name#/} $how"
}

[ $# -gt 0 ] || { echo "which services? for example: $0 identity" >&2; exit 2; }
for service in "$@"; do
  replicas=$(docker ps --quiet --filter "label=com.docker.compose.project=$PROJECT" \
    --filter "label=com.docker.compose.service=$service" --filter label=com.docker.compose.oneoff=False)
  [ -n "$replicas" ] || { echo "no $service is running in the project $PROJECT" >&2; exit 1; }
  for replica in $replicas; do restart "$replica"; done
done
