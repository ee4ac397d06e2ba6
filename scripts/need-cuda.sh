#!/bin/sh
# The demo's programs are compiled by nvcc. Says what to do where there is none.
for nvcc in "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" "$(command -v nvcc || true)"; do
  [ -x "$nvcc" ] && exit 0
done
cat >&2 <<'TEXT'
The demo runs CUDA programs, and compiling them needs NVIDIA's CUDA toolkit (13.0, no GPU and no driver needed).
None was found at /usr/local/cuda, in $CUDA_HOME or in $PATH.
Install it from https://developer.nvidia.com/cuda-downloads and run 'make demo' again.
TEXT
exit 1
