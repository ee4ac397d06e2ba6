#!/bin/sh
# The paper's experiment in small: one queue of 16 jobs on two software P100, under each policy in turn.
# Usage: demo.sh BUILD_DIR
set -eu
cd "$(dirname "$0")/.."
build=$(cd "${1:?usage: demo.sh BUILD_DIR}" && pwd)
results=$build/demo
mkdir -p "$results"
sed "s|@WORKLOADS@|$build/workloads|" demo/jobs.toml.in > "$results/jobs.toml"

# A heddled of the demo's own; whatever happens, it ends with the demo.
directory=$(mktemp -d)
export HEDDLE_SOCKET="$directory/control" XDG_RUNTIME_DIR="$directory"
trap '"$build/bin/heddle" daemon stop >/dev/null 2>&1 || true; rm -rf "$directory"' EXIT
trap 'exit 130' INT TERM

"$build/bin/heddle" daemon start --config demo/heddle.toml
"$build/bin/heddle" devices
echo
echo 'Sixteen jobs under six policies, about four minutes. Under cg some are expected to crash: that is its point.'
status=0
# The devices are computed on the same cores as the jobs prepare and check their results on: devices come first.
nice -n 10 "$build/bin/heddle" batch "$results/jobs.toml" --policy sa,cg:2,cg:4,schedgpu,mgb-sm,mgb-warps --workers auto \
  --output "$results/output" --json-file "$results/result.json" --trace "$results/trace.json" || status=$?
[ $status -le 1 ] || exit $status  # 1: jobs crashed, and the table says which
echo
echo "Each job's output: $results/output. Figures: $results/result.json. Traces for https://ui.perfetto.dev: $results/trace-*.json"
