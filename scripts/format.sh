#!/bin/sh
# clang-format over all sources. Usage: format.sh fix|check
set -eu
cd "$(dirname "$0")/.."
files=$(git ls-files '*.h' '*.cc' '*.cu' 'src/compiler/pass/*.cpp' 'src/compiler/driver/*.cpp')
[ -n "$files" ] || exit 0
case "${1:-}" in
  fix) clang-format-14 -i $files ;;
  check) clang-format-14 --dry-run --Werror $files ;;
  *) echo "usage: $0 fix|check" >&2; exit 2 ;;
esac
