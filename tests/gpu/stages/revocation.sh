# How soon a device is a request's that a batch program computes on (revocation.py): by termination, with kernels of
# 300 ms, goal 18.5 ms (TReM: 22); by waiting for what is in flight, with kernels of 1.5 ms, goal 5 ms; and, under MPS,
# how requests fare beside it, where nothing is taken back. REQUESTS= of each, POLICIES= of "hard soft share".
. "$(dirname "$0")/common.sh"
status=0
measure() { # measure POLICY KERNEL GOAL...
  [[ " ${POLICIES:-hard soft share} " == *" ${1#priority:} "* ]] || return 0
  start_heddled "[dispatch]
policy = \"$1\"
[durability]
level = \"${LEVEL:-full}\"" || exit 1
  echo "$1"
  python3 "$(dirname "$0")/../revocation.py" "$workloads/episodes_static" --heddle "$bin/heddle" --kernel "$2" "${@:3}" \
    --requests "${REQUESTS:-100}" || status=1
  "$bin/heddle" devices
  stop_heddled
}
WARM_WORKERS=2
measure priority:hard 0.3 --goal 0.0185
measure priority:soft 0.0015 --goal 0.005
[ "$HEDDLE_MPS" != on ] || measure priority:share 0.3 --beside
exit $status
