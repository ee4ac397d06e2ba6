#!/bin/sh
# A build that lacks what a part needs says so and goes on; one that must be whole (`make check`) fails, and says what
# to install. Usage: parts.sh SOURCE_DIR
set -eu
source=${1:?usage: parts.sh SOURCE_DIR}
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
failed=0

# configure VARIABLE [OPTION...]: without the file that VARIABLE names.
configure() {
  hidden=$1
  shift
  cmake -S "$source" -B "$build" -G Ninja -U 'HEDDLE_*' "-D$hidden=/nonexistent/$hidden" "$@" 2>&1 |
    tr '\n' ' ' | tr -s ' '
}
expect() {  # WHAT TEXT PATTERN
  case $2 in
    *"$3"*) ;;
    *) echo "$1: expected '$3' in: $2" >&2; failed=1 ;;
  esac
}

without=$(configure HEDDLE_CLANG -DHEDDLE_TESTS=OFF -DHEDDLE_BENCH=OFF)
expect 'without clang' "$without" 'Left out: the compiler, heddle cc (not found: HEDDLE_CLANG). Install llvm-19-dev and clang-19'
expect 'without clang' "$without" 'Build files have been written'

for part in 'HEDDLE_CLANG:heddle cc' 'HEDDLE_NVCC:the end-to-end tests' 'HEDDLE_CUDA_INCLUDE:CUDA devices' \
            "HEDDLE_SECCOMP:the workers' system call filter"; do
  text=$(configure "${part%%:*}" -DHEDDLE_TESTS=OFF -DHEDDLE_BENCH=OFF -DHEDDLE_REQUIRE_ALL=ON)
  expect "whole, without ${part%%:*}" "$text" "${part#*:}"
  expect "whole, without ${part%%:*}" "$text" 'Configuring incomplete, errors occurred'
done
exit $failed
