#!/bin/sh
# clang-tidy over all sources of src/ that are no tests, as BUILD_DIR compiles them: where that compiles several files as
# one, so does this, which reads their headers once. Usage: tidy.sh BUILD_DIR [JOBS [SINCE]]
# With SINCE, a commit: only over what has changed since; for a header, over one unit that includes it, its own source's
# if it has one. What was clean is remembered in the user's cache, like ccache does it: by the content of all that the
# unit is made of, and of the configuration. BUILD_DIR must be built: its dependencies come from ninja.
set -eu
cd "$(dirname "$0")/.."
build=${1:?usage: tidy.sh BUILD_DIR [JOBS [SINCE]]}
jobs=${2:-2}
since=${3:-}
clean=${XDG_CACHE_HOME:-$HOME/.cache}/heddle/tidy
mkdir -p "$clean"
find "$clean" -type f -mtime +30 -delete
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One line a unit: what the compiler was given, then all that it read. An object's first dependency is what it is made
# of; a file that is no source of the project's own was generated, and includes several.
ninja -C "$build" -t deps | awk -v top="$(cd "$build" && pwd)" '
  function whole(path) {
    if (path !~ /^\//) path = top "/" path
    while (sub(/\/[^\/]+\/\.\.\//, "/", path)) {}
    return path
  }
  /^[^ ]/ {if (unit) print unit, rest
           wanted = /^src\// && !/_(test|fuzz)\.dir\// && !/_(test|fuzz)\.cc\.o/; unit = rest = ""}
  /^    / && wanted {if (!unit) {unit = whole($1)} else {rest = rest " " whole($1)}}
  END {if (unit) print unit, rest}' | grep -E '^[^ ]*\.(cc|cxx) ' | sort -u > "$work/units"
tr ' ' '\n' < "$work/units" | sort -u | sed '/^$/d' > "$work/read"
{ xargs sha256sum 2>/dev/null < "$work/read" || true; } > "$work/sums"

# The units to look at for the changed files that $1 lists.
looked_at_for() {
  awk -v changes="$1" '
    BEGIN {while ((getline file < changes) > 0) changed[file]}
    {for (i = 1; i <= NF; ++i) {
       path = $i
       if (!sub(/^.*\/src\//, "src/", path) || !(path in changed)) continue
       if (path ~ /\.cc$/) {wanted[$1]; continue}
       own = path; sub(/\.h$/, ".cc", own)
       if (index($0, "/" own " ") || !(path in by)) by[path] = $1
     }}
    END {for (path in by) wanted[by[path]]
         for (unit in wanted) print unit}' "$work/units" | sort
}
cut -d' ' -f1 "$work/units" > "$work/all"
if [ -n "$since" ]; then
  git diff --name-only "$since" -- src > "$work/changes"
  looked_at_for "$work/changes" > "$work/wanted"
  echo "clang-tidy: $(wc -l < "$work/wanted") of $(wc -l < "$work/all") units, changed since $since"
else
  cp "$work/all" "$work/wanted"
fi

# The check is about sources that are written so, not about generated units.
checks=-bugprone-suspicious-include
configuration=$(cat .clang-tidy && clang-tidy-14 --version && echo "$checks")
awk -v sums="$work/sums" '
  BEGIN {while ((getline line < sums) > 0) {split(line, part); sum[part[2]] = part[1]}}
  NR == FNR {wanted[$1]; next}
  $1 in wanted {line = $1; for (i = 1; i <= NF; ++i) line = line " " sum[$i]; print line}' \
  "$work/wanted" "$work/units" > "$work/contents"
while read -r unit content; do
  stamp=$clean/$(printf '%s %s %s' "$configuration" "${unit#"$PWD/"}" "$content" | sha256sum | cut -c1-32)
  [ -e "$stamp" ] || echo "$unit:$stamp"
done < "$work/contents" > "$work/todo"
[ -s "$work/todo" ] || { echo 'clang-tidy: nothing changed'; exit 0; }
echo "clang-tidy: $(wc -l < "$work/todo") units"
xargs -P "$jobs" -I{} sh -c '
  pair={}
  clang-tidy-14 -p "$0" --config-file=.clang-tidy --checks="$1" --quiet "${pair%%:*}" 2>/dev/null &&
    touch "${pair#*:}"' "$build" "$checks" < "$work/todo"
echo 'clang-tidy: clean'
