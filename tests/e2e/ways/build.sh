#!/bin/sh
# Builds the program of this directory by heddle cc in one of the ways that docs/compiling.md offers.
# Usage: build.sh variable|toolkit|environment|cmake HEDDLE-CC OUTPUT      (nvcc and clang: HEDDLE_NVCC, HEDDLE_CLANG)
set -eu
source=$(cd "$(dirname "$0")" && pwd)
way=$1 compiler=$2 output=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cuda=$(dirname "$(dirname "$HEDDLE_NVCC")")
known="-arch=sm_80" # where heddle cc cannot take the old architectures out of the command

build() {
  make -s -f "$source/Makefile" SOURCE="$source" "$@"
}
case $way in
  variable) build NVCC="$compiler" CUDA_DIR="$cuda" ;;
  toolkit)
    "$compiler" --toolkit "$work/cuda"
    build CUDA_DIR="$work/cuda" ;;
  environment)
    eval "$("$compiler" --env)"
    build CUDA_DIR="$cuda" ARCH="$known" ;;
  cmake)
    "$compiler" --toolkit "$work/cuda"
    cmake -S "$source" -B . -DCMAKE_CUDA_COMPILER="$work/cuda/bin/nvcc" -DCMAKE_CUDA_ARCHITECTURES=80 > log ||
      { cat log; exit 1; }
    cmake --build . > log || { cat log; exit 1; } ;;
  *) echo "no way '$way'" >&2; exit 2 ;;
esac
mv ways "$output"
