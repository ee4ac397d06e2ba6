#!/bin/bash
# Packs the sources of HEAD, and of Debian's packages what building them needs, into one archive: for a machine with a
# GPU, a compiler, CMake, Ninja and the CUDA toolkit, but neither a network nor these packages. It builds there in about
# a minute (tests/gpu/remote.sh). Usage: gpu-bundle.sh [ARCHIVE]   (default: .gpu/bundle.tar.gz, which git ignores)
# Programs for the stages `compiled` and `reproduce` are packed where they were built: ninja -C build/dev gpu_compiled.
set -euo pipefail
cd "$(dirname "$0")/.."
archive=${1:-.gpu/bundle.tar.gz}
packages='libexpected-dev libfmt-dev libfmt9 libspdlog-dev libspdlog1.10 libcli11-dev libtomlplusplus-dev libtomlplusplus3
  nlohmann-json3-dev libzstd-dev libzstd1 liblz4-dev liblz4-1 libseccomp-dev libseccomp2 libgtest-dev libgmock-dev
  libbenchmark-dev libbenchmark1debian'
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
chmod 755 "$stage"  # whoever unpacks it lets other users in
mkdir -p "$stage/deps" "$(dirname "$archive")"

git archive HEAD | tar -x -C "$stage"
git rev-parse --short HEAD > "$stage/COMMIT"
for package in $packages; do
  dpkg -L "$package" 2>/dev/null || true
done | grep -E '^/(usr/)?(include|lib|share/(cmake|pkgconfig))(/|$)' | sort -u |
  while read -r file; do [ -d "$file" ] && [ ! -L "$file" ] || echo "$file"; done |
  sed 's|^/lib/|/usr/lib/|' > "$stage/list"
tar -C / -cf - --no-recursion -T <(sed 's|^/||' "$stage/list") 2>/dev/null | tar -x -C "$stage/deps"
rm "$stage/list"
# What heddle cc compiled, for the stages `compiled` and `reproduce` (Eager Free): the machine there has no LLVM.
compiled=${HEDDLE_COMPILED:-build/dev/tests/gpu/compiled}
if [ -x "$compiled/tasks_heddle" ]; then
  mkdir "$stage/compiled"
  cp "$compiled"/*_nvcc "$compiled"/*_heddle "$stage/compiled"
else
  echo "without programs by heddle cc: none in $compiled (ninja gpu_compiled)" >&2
fi
tar -C "$stage" -czf "$archive" .
size=$(stat -c %s "$archive")
echo "$archive: $((size >> 20)) MiB of $(cat "$stage/COMMIT")"
[ "$size" -lt $((60 << 20)) ] || { echo 'more than 60 MiB' >&2; exit 1; }
