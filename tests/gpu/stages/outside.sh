# What a program outside of MPS and those under it leave each other (HEDDLE_MPS=auto; off and on to compare with): four
# update 4 MiB of the device's memory in place, a fifth one pinned memory, which cannot be run again. Rounds of each in
# WINDOW= seconds (default 8) against those that it does alone; then of five that are all of the first kind.
. "$(dirname "$0")/common.sh"
WARM_WORKERS=2
start_heddled '[durability]
level = "'"${LEVEL:-auto}"'"' || exit 1
rounds() { "$bin/heddle" run -- "$HEDDLE_BUILD/tests/gpu/faults_static" work "${WINDOW:-8}" "$@" < /dev/null | sed -n 's/^faults: \([0-9]*\) rounds: PASS/\1/p'; }
# together KIND...: each KIND is `device` or `pinned`; a line for each, its rounds over those alone.
together() {
  local kind number=0 running=()
  for kind in "$@"; do
    number=$((number + 1))
    if [ "$kind" = pinned ]; then rounds pinned; else rounds; fi > "$logs/$number" & running+=($!)
  done
  wait "${running[@]}"
  number=0
  for kind in "$@"; do
    number=$((number + 1))
    awk -v kind="$kind" -v alone="${alone[$kind]}" '{ printf "%-7s %8d rounds, %.3f of those alone\n", kind, $1, $1 / alone; seen = 1 } END { exit !seen }' \
      "$logs/$number" || { echo "FAIL $kind: no right result"; status=1; }
  done
}
status=0
declare -A alone=([device]=$(rounds) [pinned]=$(rounds pinned))
[ "${alone[device]}" ] && [ "${alone[pinned]}" ] || { echo 'FAIL alone: no right result'; exit 1; }
echo "alone: device ${alone[device]} rounds, pinned ${alone[pinned]}"
echo 'four and one:'
together device device device device pinned
echo 'five alike:'
together device device device device device
echo "outside of MPS went: $(grep -c 'goes on outside of MPS' "$logs/heddled.log")"
exit $status
