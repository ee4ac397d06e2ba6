#!/bin/sh
# Configures a preset, quietly; what CMake has to say of parts that are left out, and of errors, is shown.
# Usage: configure.sh PRESET [CMAKE OPTION...]
set -eu
cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
preset=${1:?usage: configure.sh PRESET [CMAKE OPTION...]}
shift
if cmake --preset "$preset" -DHEDDLE_REQUIRE_ALL=OFF "$@" > "$log" 2>&1; then
  grep -e 'Left out:' "$log" || true
else
  cat "$log" >&2
  exit 1
fi
