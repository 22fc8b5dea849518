#!/usr/bin/env bash
# The container run, where it can be done: `make e2e-containers` on an engine that is here, or, as root on Debian, on one
# that is installed and started for the occasion and ended again. Elsewhere it says so, loudly, and ends with success.
#
#   deploy/ci-containers.sh            everything, queues in Redis
#   deploy/ci-containers.sh rabbitmq   and then the journeys again, queues in RabbitMQ
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ENGINE_SECONDS=60
REGISTRY_SECONDS=20
PACKAGES=(docker.io docker-compose debootstrap iptables)
engine_pid=

left_out() { printf '\n*** THE CONTAINER RUN WAS LEFT OUT: %s ***\n\n' "$1"; exit 0; }
answers() { docker info >/dev/null 2>&1; }
stage() { echo "container run: $1 took $((SECONDS - since)) s"; since=$SECONDS; }

end_engine() {
  [ -n "$engine_pid" ] || return 0
  kill "$engine_pid" 2>/dev/null || true
  wait "$engine_pid" 2>/dev/null || true
}
trap end_engine EXIT

install_engine() {
  if command -v dockerd debootstrap docker-compose >/dev/null; then return; fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${PACKAGES[@]}" >/dev/null
}

start_engine() {
  dockerd >"${TMPDIR:-/tmp}/tip-dockerd.log" 2>&1 &
  engine_pid=$!
  for _ in $(seq $ENGINE_SECONDS); do
    if answers; then return; fi
    kill -0 "$engine_pid" 2>/dev/null || break
    sleep 1
  done
  engine_pid=
  left_out "an engine was installed but does not start here: $(tail -n 1 "${TMPDIR:-/tmp}/tip-dockerd.log")"
}

images_can_be_pulled() { timeout $REGISTRY_SECONDS docker pull --quiet redis:7 >/dev/null 2>&1; }

use_standins() {
  [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || left_out "no image registry can be reached, and stand-ins need root and debootstrap"
  deploy/containers/standins.sh postgres redis python nginx "$@"
  # shellcheck source=deploy/containers/standins.env
  . deploy/containers/standins.env
}

since=$SECONDS
if ! answers; then
  [ "$(id -u)" = 0 ] && [ -f /etc/debian_version ] || left_out "there is no container engine, and only root on Debian can install one"
  install_engine
  stage "installing the engine"
  start_engine
  stage "starting the engine"
fi
docker compose version >/dev/null 2>&1 || docker-compose version >/dev/null 2>&1 || left_out "there is no Compose"

if [ -z "${PYTHON_IMAGE:-}" ] && ! images_can_be_pulled; then
  use_standins "$@"
  stage "making stand-in images"
fi
# Packages come through a certificate authority of the network's own, if pip has been told of one.
if [ -n "${PIP_CERT:-}" ] && [ ! -f deploy/containers/extra-ca.crt ]; then cp "$PIP_CERT" deploy/containers/extra-ca.crt; fi

make --no-print-directory e2e-containers
stage "make e2e-containers"
if [ "${1:-}" = rabbitmq ]; then
  QUEUE_URL=amqp://guest:guest@rabbitmq:5672// TIP_COMPOSE_FILES=deploy/containers/rabbitmq.yml \
    make --no-print-directory e2e-containers ARGS='-k "journeys or clients"'
  stage "the journeys with RabbitMQ"
fi
