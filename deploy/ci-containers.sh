#!/usr/bin/env bash
# The container run, where it can be done: `make e2e-containers` on an engine that is here, or, as root on Debian, on one
# that is installed and started for the occasion and ended again. Elsewhere it says so, loudly, and ends with success.
#
#   deploy/ci-containers.sh         everything, queues in Redis, users our own
#   deploy/ci-containers.sh peers   and then the journeys again, queues in RabbitMQ, users of an OpenID Connect provider
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ENGINE_SECONDS=60
REGISTRY_SECONDS=20
PACKAGES=(docker.io docker-compose debootstrap iptables)
PROJECTS=(tip-e2e tip-peers tip-restored)
OWN_CA=deploy/containers/extra-ca.crt
scratch=$(mktemp -d)
engine_pid=
made_ca=

left_out() { printf '\n*** THE CONTAINER RUN WAS LEFT OUT: %s ***\n\n' "$1"; exit 0; }
answers() { docker info >/dev/null 2>&1; }
root_on_debian() { [ "$(id -u)" = 0 ] && [ -f /etc/debian_version ]; }
stage() { echo "container run: $1 took $((SECONDS - since)) s"; since=$SECONDS; }

end() {
  [ -z "$made_ca" ] || rm -f "$OWN_CA"
  if [ -n "$engine_pid" ]; then
    docker image prune --force >/dev/null 2>&1 || true # of earlier builds
    kill "$engine_pid" 2>/dev/null || true
    wait "$engine_pid" 2>/dev/null || true
  fi
  rm -rf "$scratch"
}
trap end EXIT
trap 'exit 143' TERM INT HUP

install_engine() {
  if command -v dockerd debootstrap docker-compose >/dev/null; then return; fi
  apt-get update -qq &&
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${PACKAGES[@]}" >"$scratch/apt.log" 2>&1 ||
    left_out "no engine could be installed: $(tail -n 1 "$scratch/apt.log")"
}

start_engine() {
  # A process id file of its own: one left by an engine that was killed may name somebody else by now.
  dockerd --pidfile "$scratch/dockerd.pid" >"$scratch/dockerd.log" 2>&1 &
  engine_pid=$!
  for _ in $(seq $ENGINE_SECONDS); do
    if answers; then return; fi
    kill -0 "$engine_pid" 2>/dev/null || break
    sleep 1
  done
  left_out "an engine is installed but does not start here: $(tail -n 1 "$scratch/dockerd.log")"
}

remove_leftovers() {
  local project
  for project in "${PROJECTS[@]}"; do
    docker ps --all --quiet --filter "label=com.docker.compose.project=$project" | xargs --no-run-if-empty docker rm --force >/dev/null
  done
}

images_can_be_pulled() { timeout $REGISTRY_SECONDS docker pull --quiet redis:7 >/dev/null 2>&1; }

use_standins() {
  [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || left_out "no image registry can be reached, and stand-ins need root and debootstrap"
  deploy/containers/standins.sh "$@" || left_out "no image registry can be reached, and stand-ins could not be made: see above"
  # shellcheck source=deploy/containers/standins.env
  . deploy/containers/standins.env
}

since=$SECONDS
peers=()
[ "${1:-}" != peers ] || peers=(rabbitmq)
if ! answers; then
  root_on_debian || left_out "there is no container engine, and only root on Debian can install one"
  install_engine
  stage "installing the engine"
  start_engine
  stage "starting the engine"
fi
docker compose version >/dev/null 2>&1 || docker-compose version >/dev/null 2>&1 || left_out "there is no Compose"
remove_leftovers

if [ -z "${PYTHON_IMAGE:-}" ] && ! images_can_be_pulled; then
  stage "asking for an image registry"
  use_standins postgres redis python nginx "${peers[@]}"
  stage "making stand-in images"
fi
# Packages come through a certificate authority of the network's own, if pip is configured with one.
if [ -n "${PIP_CERT:-}" ] && [ ! -f "$OWN_CA" ]; then
  cp "$PIP_CERT" "$OWN_CA"
  made_ca=yes
fi

make --no-print-directory e2e-containers
stage "make e2e-containers"
if [ ${#peers[@]} -gt 0 ]; then
  COMPOSE_PROJECT_NAME=tip-peers QUEUE_URL=amqp://guest:guest@rabbitmq:5672// \
    TIP_COMPOSE_FILES="deploy/containers/rabbitmq.yml deploy/containers/glewlwyd.yml" \
    make --no-print-directory e2e-containers ARGS='-k "journeys or clients or provider"'
  stage "the journeys with RabbitMQ and glewlwyd"
fi
echo "container run: passed after $SECONDS s"
