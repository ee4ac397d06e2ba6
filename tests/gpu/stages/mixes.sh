# Sixteen jobs of 1 to 13 GB on one device that is limited to 16 GiB, under each policy (POLICIES=), and with NATIVE=1
# as they would run without heddle, on a card of which another process leaves 16 GiB free: one after the other, all at
# once in time slices, and all at once under a plain MPS.
#
# MIX=W1 (or another name that workloads/mixes/mix.py knows; MIX_OPTIONS="--seed 2 --work 0.5" goes to it) draws the jobs
# in place of those of mix.toml.in. CONTEXT_MEMORY=0 does not charge the contexts' own memory. LEVEL=full (or long) has
# their work outlive its workers ([durability] level), to see what that costs; DISPATCH=fs lends them the device
# ([dispatch] policy). A job that crashes is a result; a batch that did not run is a failure of the stage.
. "$(dirname "$0")/common.sh"
mix=$logs/mix.toml
if [ "${MIX:-}" ]; then
  # shellcheck disable=SC2086
  python3 "$(dirname "$0")/../../../workloads/mixes/mix.py" "$MIX" --static --workloads "$workloads" ${MIX_OPTIONS:-} > "$mix" || exit 1
else
  sed "s|@WORKLOADS@|$workloads|" "$(dirname "$0")/../mix.toml.in" > "$mix"
fi
jobs=$(grep -c '^\[\[job\]\]' "$mix")
result=$logs/result${TAG:+-$TAG}.json
rm -f "$result"
if [ "${POLICIES-sa,mgb-warps}" ]; then
  WARM_WORKERS=2
  start_heddled "memory = \"16G\"
${CONTEXT_MEMORY:+context_memory = \"$CONTEXT_MEMORY\"}
[durability]
level = \"${LEVEL:-off}\"
[dispatch]
policy = \"${DISPATCH:-open}\"" || exit 1
  "$bin/heddle" devices
  timeout "${LIMIT:-420}" "$bin/heddle" batch "$mix" --policy "${POLICIES-sa,mgb-warps}" --workers auto \
    --output "$logs/batch" --json-file "$result" < /dev/null
  status=$?
  stop_heddled
  # 1: some job crashed, which is what some policies are there to show.
  [ "$status" -le 1 ] && [ -s "$result" ] || { echo "the batch did not run: exit status $status"; exit 1; }
fi
[ "${NATIVE:-}" ] || exit 0

# Each job's output goes to a file of its own; its status and its end are a line of the table.
native() { # native NAME AT-ONCE
  local table=$logs/native-$1.table
  : > "$table"
  local begin
  begin=$(seconds)
  sed -n 's/^command = \[\(.*\)\]/\1/p' "$mix" | tr -d '",' | cat -n |
    xargs -P "$2" -I{} bash -c 'read -r n command <<< "$1"; timeout 120 $command > "$2-$n.log" 2>&1; echo "$? $(date +%s.%N)" >> "$3"' \
      _ {} "$logs/native-$1" "$table"
  awk -v what="$1" -v begin="$begin" '{ n++; last = $2 > last ? $2 : last; turnaround += $2 - begin; crashed += $1 != 0 }
    END { printf "native %-16s %8.2f s, turnaround %8.2f s, %d of %d crashed\n", what, last - begin, turnaround / n, crashed, n }' "$table"
  [ "$(wc -l < "$table")" -eq "$jobs" ]
}
leave_free() { # the rest of the card belongs to somebody else meanwhile
  coproc HOLDER { exec "$loops" leave "$1"; }
  holder=$HOLDER_PID
  read -r -t 60 answer <&"${HOLDER[0]}" && [ "$answer" = holding ]
}
failed=0
leave_free 16384 || { echo 'cannot take the rest of the card'; exit 1; }
native one-by-one 1 || failed=1
native at-once "$jobs" || failed=1
if control=$(command -v nvidia-cuda-mps-control || ls /usr/local/nvidia/bin/nvidia-cuda-mps-control 2>/dev/null); then
  pipes=$(mktemp -d /tmp/heddle-plain-mps-XXXXXX)
  CUDA_MPS_PIPE_DIRECTORY=$pipes CUDA_MPS_LOG_DIRECTORY=$pipes "$control" -f > "$logs/plain-mps.log" 2>&1 & daemon=$!
  for _ in $(seq 100); do [ -e "$pipes/control" ] && break; sleep 0.05; done
  CUDA_MPS_PIPE_DIRECTORY=$pipes CUDA_MPS_LOG_DIRECTORY=$pipes native at-once-mps "$jobs" || failed=1
  kill "$daemon" 2>/dev/null
  wait "$daemon" 2>/dev/null
  rm -rf "$pipes"
fi
kill "$holder" 2>/dev/null
exit $failed
