#!/bin/sh
# Builds the fuzzers, in the build with AddressSanitizer, and runs each over its corpus for SECONDS.
# Usage: fuzz.sh SECONDS
# What a fuzzer finds is left in build/fuzz/found; new corpus entries stay in build/fuzz/corpus until somebody keeps them.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:?usage: fuzz.sh SECONDS}
build=build/asan
kept=build/fuzz
cmake --preset asan > /dev/null
cmake --build --preset asan --target fuzzers
mkdir -p $kept/found
# A fuzzer's own runtime brings libstdc++ before the sanitizer's library, which still comes before libc.
export ASAN_OPTIONS=verify_asan_link_order=0
for source in $(git ls-files 'src/*_fuzz.cc'); do
  name=$(basename "$source" .cc)
  mkdir -p "$kept/corpus/$name"
  echo "== $name, $seconds s"
  "$build/bin/$name" -max_total_time="$seconds" -artifact_prefix="$kept/found/$name-" -print_final_stats=0 -verbosity=0 \
    "$kept/corpus/$name" "$(dirname "$source")/corpus/$name"
done
