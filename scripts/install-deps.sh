#!/bin/sh
# Installs the Debian packages that are missing. Usage: install-deps.sh build|check
# `build` is enough for the demo; `check` adds what the checks need. Does nothing, quickly, when all is there.
set -eu

build="g++ cmake ninja-build pkg-config ccache libexpected-dev libfmt-dev libspdlog-dev libcli11-dev libtomlplusplus-dev
  nlohmann-json3-dev libzstd-dev liblz4-dev libseccomp-dev libopenblas0-pthread libgtest-dev libgmock-dev libbenchmark-dev
  llvm-19-dev clang-19"
check="llvm-19-tools libomp-19-dev libclang-rt-19-dev python3 clang-format-14 clang-tidy-14 codespell"

case "${1:-}" in
  build) wanted=$build ;;
  check) wanted="$build $check" ;;
  *) echo "usage: $0 build|check" >&2; exit 2 ;;
esac

missing=
for package in $wanted; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "these packages are missing, and this system has no apt-get to install them with:$missing" >&2
  exit 1
fi
as_root=
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "run this once as root: apt-get install$missing" >&2; exit 1; }
  as_root=sudo
fi
echo "installing:$missing"
$as_root apt-get update -qq
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
