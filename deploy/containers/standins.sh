#!/usr/bin/env bash
# Makes the base images from Debian packages, for machines that reach a package mirror but no image registry.
#
#   deploy/containers/standins.sh [name ...]      needs root, Debian's debootstrap and a running engine
#   . deploy/containers/standins.env              then docker-compose.yml uses them
#
# They carry honest names (tip-standin/...): what passes on them proves the wiring, not the public image's version.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
export DOCKER_BUILDKIT=0

SUITE=bookworm
MIRROR=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
SECURITY=${DEBIAN_SECURITY_MIRROR:-http://deb.debian.org/debian-security}
BASE=tip-standin/debian:$SUITE
declare -A IMAGES=(
  [postgres]=tip-standin/postgres:15 [redis]=tip-standin/redis:7 [python]=tip-standin/python:3.11
  [nginx]=tip-standin/nginx:1 [rabbitmq]=tip-standin/rabbitmq:3.10
)

# Made already, and from this very recipe.
have() { [ "$(docker image inspect --format '{{index .Config.Labels "tip.recipe"}}' "$1" 2>/dev/null)" = "$2" ]; }
recipe() { cat "$@" | sha256sum | cut -c 1-16; }

make_base() {
  local root
  root=$(mktemp -d)
  debootstrap --variant=minbase --include=ca-certificates "$SUITE" "$root" "$MIRROR" >/dev/null
  printf 'deb %s %s main\ndeb %s %s-updates main\ndeb %s %s-security main\n' \
    "$MIRROR" $SUITE "$MIRROR" $SUITE "$SECURITY" $SUITE >"$root/etc/apt/sources.list"
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
  tar -C "$root" -c . | docker import -c 'ENV LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive' -c "LABEL tip.recipe=$(recipe standins.sh)" - "$BASE" >/dev/null
  rm -rf "$root"
}

began=$SECONDS
have "$BASE" "$(recipe standins.sh)" || { make_base; echo "$BASE made in $((SECONDS - began)) s"; }
for name in "${@:-postgres redis python nginx}"; do
  for one in $name; do
    image=${IMAGES[$one]:?no stand-in of that name}
    wanted=$(recipe standins.sh standins/"$one"/*)
    have "$image" "$wanted" && continue
    step=$SECONDS
    docker build --quiet --label "tip.recipe=$wanted" --build-arg BASE="$BASE" --tag "$image" "standins/$one" >/dev/null
    echo "$image made in $((SECONDS - step)) s"
  done
done
echo "stand-in images are ready after $((SECONDS - began)) s"
