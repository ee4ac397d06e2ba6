#!/bin/sh
# clang-tidy over every source of src/, as the compile commands of BUILD_DIR have it. Usage: tidy.sh BUILD_DIR [JOBS]
# A file that was clean is not looked at again until it, a header of the project or the configuration changes.
set -eu
cd "$(dirname "$0")/.."
build=${1:?usage: tidy.sh BUILD_DIR [JOBS]}
jobs=${2:-2}
stamps=$build/tidy
mkdir -p "$stamps"

headers=$(git ls-files 'src/*.h' .clang-tidy | xargs cat | sha256sum | cut -c1-16)
todo=
for file in $(git ls-files 'src/*.cc' | grep -v -e '_test\.cc$' -e '_fuzz\.cc$'); do
  grep -q "\"file\": \".*/$file\"" "$build/compile_commands.json" || continue
  stamp=$stamps/$(echo "$headers $file" | cat - "$file" | sha256sum | cut -c1-32)
  [ -e "$stamp" ] || todo="$todo $file:$stamp"
done
[ -n "$todo" ] || { echo 'clang-tidy: nothing changed'; exit 0; }
echo "clang-tidy: $(echo $todo | wc -w) files"
printf '%s\n' $todo | xargs -P "$jobs" -I{} sh -c '
  pair={}; clang-tidy-14 -p "$0" --quiet "${pair%%:*}" 2>/dev/null && touch "${pair#*:}"' "$build"
