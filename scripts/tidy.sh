#!/bin/sh
# clang-tidy over every source of src/ that is no test, as BUILD_DIR compiles it. Usage: tidy.sh BUILD_DIR [JOBS [SINCE]]
# With SINCE, a commit: only over what has changed since; for a header, over one source that includes it, its own if it
# has one. What was clean is remembered in the user's cache, like ccache does it: by the content of the source, of
# everything that it includes, and of the configuration. BUILD_DIR must be built: its dependencies come from ninja.
set -eu
cd "$(dirname "$0")/.."
build=${1:?usage: tidy.sh BUILD_DIR [JOBS]}
jobs=${2:-2}
since=${3:-}
clean=${XDG_CACHE_HOME:-$HOME/.cache}/heddle/tidy
mkdir -p "$clean"
find "$clean" -type f -mtime +30 -delete
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

ninja -C "$build" -t deps > "$work/deps"
awk '/^    / {print $1}' "$work/deps" | sort -u | (cd "$build" && xargs sha256sum 2>/dev/null || true) > "$work/sums"
# One line a source: its path, and the sums of all that it is made of. An object's first dependency is its source.
awk 'NR == FNR {sum[$2] = $1; next}
     /^[^ ]/ {fresh = 1}
     /^    / {if (fresh && source) print source, line
              if (fresh) {source = $1; line = ""; fresh = 0}
              line = line sum[$1]}
     END {if (source) print source, line}' "$work/sums" "$work/deps" > "$work/sources"

git ls-files 'src/*.cc' | grep -v -e '_test\.cc$' -e '_fuzz\.cc$' > "$work/files"

# The sources to look at for the files that $1 lists.
looked_at_for() {
  awk -v files="$work/files" -v changes="$1" '
    BEGIN {while ((getline file < files) > 0) known[file]
           while ((getline file < changes) > 0) changed[file]}
    /^[^ ]/ {source = ""; next}
    /^    / {path = $1; if (!sub(/^.*\/src\//, "src/", path)) next
             if (source == "") {source = path; if (source in known && source in changed) print source; next}
             if (!(path in changed) || !(source in known)) next
             own = path; sub(/\.h$/, ".cc", own)
             if (source == own || !(path in by)) by[path] = source}
    END {for (path in by) print by[path]}' "$work/deps" | sort -u
}
if [ -n "$since" ]; then
  git diff --name-only "$since" -- src > "$work/changes"
  looked_at_for "$work/changes" > "$work/wanted"
  echo "clang-tidy: $(wc -l < "$work/wanted") of $(wc -l < "$work/files") files, changed since $since"
else
  cp "$work/files" "$work/wanted"
fi

configuration=$(cat .clang-tidy && clang-tidy-14 --version)
while read -r file; do
  grep -q "\"file\": \".*/$file\"" "$build/compile_commands.json" || continue
  content=$(awk -v file="/$file" 'substr($1, length($1) - length(file) + 1) == file {print $2}' "$work/sources" | sort)
  stamp=$clean/$(printf '%s %s %s' "$configuration" "$file" "$content" | sha256sum | cut -c1-32)
  [ -n "$content" ] && [ -e "$stamp" ] || echo "$file:$stamp"
done < "$work/wanted" > "$work/todo"
[ -s "$work/todo" ] || { echo 'clang-tidy: nothing changed'; exit 0; }
echo "clang-tidy: $(wc -l < "$work/todo") files"
xargs -P "$jobs" -I{} sh -c '
  pair={}; clang-tidy-14 -p "$0" --quiet "${pair%%:*}" 2>/dev/null && touch "${pair#*:}"' "$build" < "$work/todo"
echo 'clang-tidy: clean'
