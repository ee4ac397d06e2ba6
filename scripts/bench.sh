#!/bin/sh
# Runs every benchmark. Usage: bench.sh BUILD_DIR full|short
# Short runs only show that they still work; figures come from full ones.
set -eu
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
  "$bench" $limits
done
[ -n "$found" ] || { echo "no benchmark in $build/bin" >&2; exit 1; }
