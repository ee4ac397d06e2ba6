#!/bin/sh
# Where the time of a program goes that allocates and frees in a loop, on a software device that does not pace: an
# iteration alone and among six, with its memory calls and without, and the system calls of every process for each.
# Usage: bench/memory_loops.sh BUILD_DIR [PROGRAM [ITERATIONS]]; the counts need strace, and leave to trace workers.
set -eu
cd "$(dirname "$0")/.."
build=${1:?usage: memory_loops.sh BUILD_DIR [PROGRAM [ITERATIONS]]}
program=${2:-$build/tests/e2e/programs/memory_loop}
iterations=${3:-2000}
directory=$(mktemp -d)
export HEDDLE_SOCKET="$directory/control" XDG_RUNTIME_DIR="$directory"
trap '"$build/bin/heddle" daemon stop >/dev/null 2>&1 || :; rm -rf "$directory"' EXIT
"$build/bin/heddle" daemon start --config bench/heddle.toml

run() { "$build/bin/heddle" run -- "$program" "$@"; }
echo "== alone"
run "$iterations" 4
echo "== alone, allocated once"
run "$iterations" 4 keep
for how in "" keep; do
  echo "== six at once${how:+, allocated once}"
  pids=
  for _ in 1 2 3 4 5 6; do run "$iterations" 4 $how & pids="$pids $!"; done
  for pid in $pids; do wait "$pid"; done
done

command -v strace >/dev/null || exit 0
daemon=$("$build/bin/heddle" daemon status --json | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' | head -n 1)
for how in "" keep; do
  echo "== system calls for an iteration${how:+, allocated once}"
  # The program waits at the end of its input, so that its worker can be found and both be traced while it runs.
  strace -f -c -U calls,name -o "$directory/heddled" -p "$daemon" 2>/dev/null & tracing=$!
  strace -f -c -U calls,name -o "$directory/program" "$build/bin/heddle" run -- "$program" "$iterations" 4 $how \
    > "$directory/out" & running=$!
  while ! worker=$("$build/bin/heddle" ps --json | sed -n 's/.*"worker_pid": *\([1-9][0-9]*\).*/\1/p' | head -n 1) ||
        [ -z "$worker" ]; do
    kill -0 "$running" 2>/dev/null || break
  done
  [ -z "$worker" ] || { strace -f -c -U calls,name -o "$directory/worker" -p "$worker" 2>/dev/null & }
  wait "$running"
  cat "$directory/out"
  kill "$tracing"; wait "$tracing" || :
  sleep 1
  for process in program worker heddled; do
    [ -s "$directory/$process" ] || continue
    awk -v process="$process" -v n="$iterations" '$1 ~ /^[0-9]+$/ && $2 != "total" && $1 / n >= 0.05 {
      printf "%-8s %-14s %.2f\n", process, $2, $1 / n }' "$directory/$process"
  done
done
