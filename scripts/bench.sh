#!/bin/sh
# Runs every benchmark. Usage: bench.sh BUILD_DIR full|short
# Short runs only show that they still work; figures come from full ones, on a machine that does nothing else.
set -eu
cd "$(dirname "$0")/.."
build=${1:?usage: bench.sh BUILD_DIR full|short}
case "${2:-full}" in
  full) limits= ;;
  short) limits=--benchmark_min_time=0.01 ;;
  *) echo "usage: $0 BUILD_DIR full|short" >&2; exit 2 ;;
esac

found=
for bench in "$build"/bin/*_bench; do
  [ -x "$bench" ] || continue
  found=yes
  echo "== $(basename "$bench")"
  case $bench in
    */tenant_bench)  # a CUDA program: under a heddled of its own
      directory=$(mktemp -d)
      export HEDDLE_SOCKET="$directory/control" XDG_RUNTIME_DIR="$directory"
      "$build/bin/heddle" daemon start --config bench/heddle.toml
      status=0
      "$build/bin/heddle" run -- "$bench" $limits || status=$?
      "$build/bin/heddle" daemon stop
      rm -rf "$directory"
      [ $status = 0 ] || exit $status
      ;;
    *) "$bench" $limits ;;
  esac
done
[ -n "$found" ] || { echo "no benchmark in $build/bin" >&2; exit 1; }
