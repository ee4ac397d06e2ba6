# The daemon, a keeper, a worker or a neighbour dies: programs go on where they can, memory survives, and the service
# goes on. As TENANT and NEIGHBOUR, where these are set (users.sh does).
. "$(dirname "$0")/common.sh"
start_heddled '' "reconnect_grace = \"5s\"
${WORKER_USER:+worker_user = \"$WORKER_USER\"}" || exit 1
status=0
as() { # as USER: the words that a command of the user begins with
  [ -z "$1" ] || echo "setpriv --reuid $1 --regid $1 --clear-groups"
}
# shellcheck disable=SC2207
tenant=($(as "${TENANT:-}")) neighbour=($(as "${NEIGHBOUR:-}"))
long=("$workloads/srad_v1_static" --rows 2048 --columns 2048 --iterations 3000 --check sample)
short=("$workloads/vecadd_static" --size 1m)
verdict() { # verdict WHAT LOG: whether the program said PASS
  if grep -q PASS "$2"; then echo "ok   $1"; else echo "FAIL $1: $(tail -n 2 "$2" | tr '\n' ' ')"; status=1; fi
}
# check WHAT COMMAND...: a program of the tenant, and the command 0.7 s after its start.
check() {
  local what=$1; shift
  timeout 90 "${tenant[@]}" "$bin/heddle" run -- "${long[@]}" > "$logs/$what.log" 2>&1 < /dev/null & local running=$!
  sleep 0.7
  "$@" > "$logs/$what-action.log" 2>&1
  wait "$running"
}
next() { timeout 60 "${neighbour[@]}" "$bin/heddle" run -- "${short[@]}" < /dev/null; }
kill_keeper() { kill -KILL $(pgrep -P "$(heddled_process)" heddle-keeper) && next; }
kill_heddled() { kill -KILL "$(heddled_process)"; sleep 1; next; }
fault() { timeout 60 "${neighbour[@]}" "$bin/heddle" run -- "$loops" fault; next; }

check undisturbed true
verdict undisturbed "$logs/undisturbed.log"
check keeper-killed kill_keeper
verdict keeper-killed "$logs/keeper-killed.log"
verdict 'memory after the keeper was killed' "$logs/keeper-killed-action.log"
check heddled-killed kill_heddled
verdict heddled-killed "$logs/heddled-killed.log"
verdict 'a session after heddled was killed' "$logs/heddled-killed-action.log"
check neighbour-faults fault
if [ "$HEDDLE_MPS" = on ] && ! grep -q PASS "$logs/neighbour-faults.log"; then
  # One client's fault is every client's under MPS: the program has to be told, and who comes next must not notice.
  if grep -q -i 'illegal\|launch\|CUDA error\|unavailable' "$logs/neighbour-faults.log"
  then echo "ok   neighbour-faults under MPS is an error: $(tail -n 1 "$logs/neighbour-faults.log")"
  else echo "FAIL neighbour-faults: $(tail -n 2 "$logs/neighbour-faults.log" | tr '\n' ' ')"; status=1; fi
else
  verdict neighbour-faults "$logs/neighbour-faults.log"
fi
verdict 'the neighbour sees its own fault' <(grep '^loops' "$logs/neighbour-faults-action.log")
verdict 'a session after the fault' <(grep -v '^loops' "$logs/neighbour-faults-action.log")
stop_heddled

# What a worker had written, and what its successor finds at the same address.
HEDDLE_CONFORMANCE_PTX=${HEDDLE_CONFORMANCE_PTX:-$(dirname "$0")/../../conformance/kernels.ptx} \
  "$bin/memory_survival_test" ${WORKER_USER:+--user "$WORKER_USER"} > "$logs/memory.log" 2>&1 || status=1
grep -E '^\[ +(OK|FAILED|SKIPPED) +\] ' "$logs/memory.log" | sort -u
grep -q '^\[  PASSED  \]' "$logs/memory.log" || { echo 'FAIL memory_survival_test'; tail -n 20 "$logs/memory.log"; status=1; }
exit $status
