#!/bin/bash
# Lays out what was built here, stripped, with the shared libraries that a machine with a GPU may lack, in a directory
# that such a machine can run the GPU stages from without building anything: HEDDLE_BUILD=DIRECTORY tests/gpu/run.sh ...
# The programs of the stages programs, libraries, steady and those of timed workloads go with it: some 50 MB; PROGRAMS=
# and WORKLOADS= name fewer. Usage: gpu-carry.sh [BUILD] [DIRECTORY]   (default: build/dev .gpu/carry, which git ignores)
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/dev}
to=${2:-.gpu/carry}
rm -rf "$to"
mkdir -p "$to"/bin "$to"/lib/heddle "$to"/deps "$to"/tests/gpu "$to"/workloads

cp "$build"/bin/{heddle,heddled,heddle-vault,heddle-worker,heddle-keeper} "$to/bin"
cp -P "$build"/lib/heddle/lib*.so* "$to/lib/heddle"
strip --strip-unneeded "$to"/bin/*
for library in "$to"/lib/heddle/*.so*; do [ -L "$library" ] || strip --strip-unneeded "$library"; done
# Libraries of the C library's own come with the system.
ldd "$to"/bin/* | awk '/=> \// { print $3 }' | sort -u | grep -vE '/(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s)\.so' |
  xargs -I{} cp -L {} "$to/deps"
for name in zstd lz4; do cp -L "$(ldconfig -p | awk -v n="lib$name.so.1" '$1 == n { print $NF; exit }')" "$to/deps"; done
find "$build/tests/gpu" -maxdepth 1 -name '*_static' -exec cp {} "$to/tests/gpu" \;
# shellcheck disable=SC2046
for name in ${WORKLOADS-$(. tests/gpu/stages/common.sh >/dev/null 2>&1; timed_workloads | cut -d' ' -f1)}; do
  cp "$build/workloads/${name}_static" "$to/workloads"
done
mkdir -p "$to/tests/e2e/programs"
cp "$build"/tests/e2e/programs/*.ptx "$build"/tests/e2e/programs/*.fatbin "$to/tests/e2e/programs"
for name in ${PROGRAMS-textures pools graphs graph_memory graph_conditions graph_conditions_ptx grid_sync limits reset growing
  driver_buffers driver_contexts driver_mixed driver_modules libraries libraries_complex libraries_batched libraries_typed
  libraries_old library_graphs quasi_random fourier outlives}; do
  [ ! -x "$build/tests/e2e/programs/$name" ] || cp "$build/tests/e2e/programs/$name" "$to/tests/e2e/programs"
done
git rev-parse --short HEAD > "$to/COMMIT"
echo "$to: $(du -sm "$to" | cut -f1) MiB of $(cat "$to/COMMIT")"
