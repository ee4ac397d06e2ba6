# The daemon, a keeper or a neighbour dies: programs go on, and nothing is lost.
. "$(dirname "$0")/common.sh"
start_heddled '' 'reconnect_grace = "5s"' || exit 1
status=0
long=(srad_v1_static --rows 2048 --columns 2048 --iterations 3000 --check sample)
check() { # check WHAT COMMAND-TO-RUN-MEANWHILE...
  local what=$1; shift
  "$bin/heddle" run -- "$workloads/${long[0]}" "${long[@]:1}" > "$logs/$what.log" 2>&1 < /dev/null & local program=$!
  sleep 0.7
  "$@" > "$logs/$what-action.log" 2>&1
  if wait "$program" && grep -q PASS "$logs/$what.log"; then echo "ok   $what"
  else echo "FAIL $what: $(tail -n 2 "$logs/$what.log" | tr '\n' ' ')"; status=1; fi
}
keepers() { pgrep -P "$(pgrep -f "heddled.*$directory" | tail -n 1)" heddle-keeper; }
kill_keeper() { kill -KILL $(keepers) && timeout 30 "$bin/heddle" run -- "$workloads/vecadd_static" --size 1m; }
kill_heddled() { kill -KILL "$(pgrep -f "heddled.*$directory" | tail -n 1)"; sleep 1; timeout 30 "$bin/heddle" run -- "$workloads/vecadd_static" --size 1m; }
fault() { "$bin/conformance_test" --gtest_filter='On/FaultTest.WildStoreIsAnIllegalAddress/Cuda'; }
check undisturbed true
check keeper-killed kill_keeper
grep -q PASS "$logs/keeper-killed-action.log" || { echo 'FAIL no memory after the keeper was killed'; status=1; }
check heddled-killed kill_heddled
grep -q PASS "$logs/heddled-killed-action.log" || { echo 'FAIL no session after heddled was killed'; status=1; }
check neighbour-faults fault
exit $status
