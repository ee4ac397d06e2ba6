#!/bin/sh
# Which room may include which: the arrows of docs/architecture.md. Linking cannot check headers; this does. Then that
# units do not include each other in cycles, and that files stay small enough to be read.
set -u
cd "$(dirname "$0")/../src" || exit 2

allowed() {
  case $1 in
    core) echo core ;;
    image) echo core image ;;
    library) echo core library ;;
    policy) echo core policy ;;
    protocol) echo core protocol ;;
    device) echo core image library device ;;
    worker) echo core image library protocol device worker ;;
    keeper) echo core library protocol device keeper ;;
    daemon) echo core protocol policy daemon ;;
    client) echo core image library protocol client ;;
    compiler) echo pass driver llvm ;;  # its own folders, and LLVM
    simulator) echo core policy simulator ;;
    cli) echo core protocol policy simulator cli ;;
    *) echo "no arrows are drawn for room $1" >&2; exit 2 ;;
  esac
}

status=0
for room in */; do
  room=${room%/}
  names=$(allowed "$room") || exit 2
  pattern=$(echo "$names" | tr ' ' '|')
  if grep -rnE '^#include "[a-z_]+/' --include='*.h' --include='*.cc' "$room" | grep -vE "#include \"($pattern)/"; then
    echo "room $room may include only: $names" >&2
    status=1
  fi
done
# spdlog never enters a tenant's process: only rooms that run in processes of heddle's own include the log.
if grep -rnE '#include "(core/log\.h)"|#include <(spdlog|fmt)/' client image library protocol policy device simulator; then
  echo 'these rooms are linked into tenants or must stay pure: no log, no fmt' >&2
  status=1
fi
# A unit is X.h with X.cc. Where they include each other in a cycle, none can be understood or changed by itself.
# (In device and library, two units of a decoder and of a table of calls still do.)
for room in cli client compiler core daemon image keeper policy protocol simulator worker; do
  if ! grep -rE "^#include \"$room/[^\"]*\.h\"" --include='*.h' --include='*.cc' "$room" |
    sed -E 's,^([^:]*)\.(h|cc):#include "(.*)\.h",\1 \3,' | tsort >/dev/null; then
    echo "units of room $room include each other in a cycle: those that tsort names" >&2
    status=1
  fi
done
# The client's folders from the ground up: each includes only those before it, and what lies beside the folders.
after='link device copy stream memory graph api driver libraries'
while [ -n "$after" ]; do
  folder=${after%% *}
  after=${after#"$folder"}
  after=${after# }
  [ -n "$after" ] || break
  if grep -rnE "^#include \"client/($(echo "$after" | tr ' ' '|'))/" --include='*.h' --include='*.cc' "client/$folder"; then
    echo "client/$folder may include none of client's $after" >&2
    status=1
  fi
done
# Longer than 400 lines only: tests, and what they run against (testing/).
for file in $(find . -name '*.h' -o -name '*.cc' -o -name '*.cpp'); do
  file=${file#./}
  case $file in *_test.cc | */testing/*) continue ;; esac
  if [ "$(wc -l <"$file")" -gt 400 ]; then
    echo "src/$file has more than 400 lines: it holds more than one idea" >&2
    status=1
  fi
done
exit $status
