#!/usr/bin/env bash
# Debian's Chromium for the console's tests in a browser, installed where root on Debian can. Elsewhere it says so, loudly,
# and ends with success: those tests are then skipped, each with its reason.
set -euo pipefail

left_out() { printf '\n*** THE TESTS IN A BROWSER ARE LEFT OUT: %s ***\n\n' "$1"; exit 0; }

if command -v chromium >/dev/null; then exit 0; fi
[ "$(id -u)" = 0 ] && [ -f /etc/debian_version ] || left_out "there is no chromium, and only root on Debian can install it"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt-get update -qq >"$log" 2>&1 &&
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >"$log" 2>&1 ||
  left_out "chromium could not be installed: $(tail -n 1 "$log")"
