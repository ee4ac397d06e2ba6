#!/bin/sh
# What managed memory costs: iterations of a kernel on device memory, managed memory and pinned memory, by turns in one
# run, where the host touches none of it, a word, or all of it between kernels. Only the ratios count.
# Usage: bench/managed.sh BUILD_DIR [ITERATIONS [MIB]]; on the machine's GPU where there is one. HEDDLE_BENCH_CONFIG is
# another configuration of heddled.
set -eu
cd "$(dirname "$0")/.."
build=${1:?usage: managed.sh BUILD_DIR [ITERATIONS [MIB]]}
iterations=${2:-20}
mebibytes=${3:-16}
directory=$(mktemp -d)
export HEDDLE_SOCKET="$directory/control" XDG_RUNTIME_DIR="$directory"
trap '"$build/bin/heddle" daemon stop >/dev/null 2>&1 || :; rm -rf "$directory"' EXIT
config=${HEDDLE_BENCH_CONFIG:-$directory/heddle.toml}
if [ ! -e "$config" ] && command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; then
  : > "$config"  # the machine's GPUs
elif [ ! -e "$config" ]; then
  printf '%s\n' '[daemon]' 'managed_memory = "device"' '[[device]]' 'preset = "P100"' 'count = 1' 'memory = "1G"' \
    'slowdown = 0' 'copy_slowdown = 0' > "$config"
fi
"$build/bin/heddle" daemon start --config "$config"
"$build/bin/heddle" run -- "$build/tests/e2e/programs/managed_loop" "$iterations" "$mebibytes"
