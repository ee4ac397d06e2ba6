#!/bin/bash
# On a machine with a GPU, in a directory where scripts/gpu-bundle.sh's archive was unpacked: builds heddle, once, and
# runs stages. Usage: remote.sh STAGE...   OUT names the directory for logs and results (default: a new one in /tmp).
# Everything that takes part says what it does: build.log, machine, a directory for each stage.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
out=${OUT:-$(mktemp -d /tmp/heddle-gpu-XXXXXX)}
mkdir -p "$out"
export HEDDLE_BUILD=$root/build/gpu HEDDLE_RESULTS=$out HEDDLE_RESULT=$out/results.md HEDDLE_LOGS=${HEDDLE_LOGS:-/tmp/heddle-gpu-logs}
export PATH=/usr/local/cuda/bin:$PATH
mkdir -p "$HEDDLE_LOGS"
{ date -u; uname -a; nproc; nvidia-smi; ldconfig -p | grep -E 'libcuda\.|ptxjit'; command -v nvidia-cuda-mps-control; ls -l /dev/nvidia*; } \
  > "$HEDDLE_LOGS/machine" 2>&1

begin=$(date +%s)
if [ ! -e "$HEDDLE_BUILD/built" ]; then
  # Programs for this GPU, and for later ones; nvcc's default would be compiled by the driver at every start.
  export NVCC_APPEND_FLAGS=${NVCC_APPEND_FLAGS--gencode arch=compute_90,code=[compute_90,sm_90]}
  { cmake -S "$root" -B "$HEDDLE_BUILD" -G Ninja -DCMAKE_BUILD_TYPE=Release -DHEDDLE_BENCH=OFF \
      -DCMAKE_PREFIX_PATH="$root/deps/usr" -DCMAKE_CXX_FLAGS="-isystem $root/deps/usr/include" &&
    ninja -C "$HEDDLE_BUILD" -k 20 gpu_bundle && touch "$HEDDLE_BUILD/built"; } > "$HEDDLE_LOGS/build.log" 2>&1
  echo "built after $(($(date +%s) - begin)) s"
  [ -e "$HEDDLE_BUILD/built" ] || { grep -E -A 6 'error|FAILED' "$HEDDLE_LOGS/build.log" | head -n 80; tail -n 5 "$HEDDLE_LOGS/build.log"; }
fi
"$root/tests/gpu/run.sh" "$@"
status=$?
tar -C "$HEDDLE_LOGS" -czf "$out/logs.tar.gz" . 2>/dev/null
exit $status
