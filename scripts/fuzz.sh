#!/bin/sh
# Builds the fuzzers with clang and runs each over its corpus for SECONDS. Usage: fuzz.sh SECONDS
# What it finds is left in build/fuzz/found; new corpus entries stay in build/fuzz/corpus until somebody keeps them.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:?usage: fuzz.sh SECONDS}
build=build/fuzz
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_COMPILER=clang-14 -DCMAKE_CXX_COMPILER=clang++-14 \
  -DHEDDLE_FUZZ=ON -DHEDDLE_TESTS=OFF -DHEDDLE_BENCH=OFF -DHEDDLE_SANITIZE=address,undefined >/dev/null
cmake --build $build --target fuzzers
mkdir -p $build/found
for source in $(git ls-files 'src/*_fuzz.cc'); do
  name=$(basename "$source" .cc)
  mkdir -p "$build/corpus/$name"
  echo "== $name, $seconds s"
  "$build/bin/$name" -max_total_time="$seconds" -artifact_prefix="$build/found/$name-" -print_final_stats=0 -verbosity=0 \
    "$build/corpus/$name" "$(dirname "$source")/corpus/$name"
done
