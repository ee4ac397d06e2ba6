# A program that does not fit beside another begins with a part of its memory on the host (docs/eager-launch.md), gets the
# rest when the other one frees its own, and is right. The GPU is limited to 6 GiB.
. "$(dirname "$0")/common.sh"
start_heddled 'memory = "6G"
[swap]
host = "4G"
idle = "0s"' 'eager_launch = true' || exit 1
steps=$(mktemp -d)
"$bin/heddle" run -- "$HEDDLE_BUILD/tests/e2e/programs/holds" "$steps" 1 3500 > "$logs/holds.log" 2>&1 < /dev/null & holds=$!
for _ in $(seq 100); do grep -q 'step 1' "$logs/holds.log" && break; sleep 0.1; done
begin=$(seconds)
"$bin/heddle" run -- "$workloads/conv2d_static" --width 16384 --height 24576 --iterations "${ITERATIONS:-200}" --check sample \
  > "$logs/conv2d.log" 2>&1 < /dev/null & program=$!
seen() { # seen FIELD: a task has it, in `heddle ps --json`
  for _ in $(seq 300); do
    "$bin/heddle" ps --json | python3 -c "
import json, sys
tasks = [task for session in json.load(sys.stdin)['sessions'] for task in session['tasks']]
found = [task['$1'] for task in tasks if task.get('$1')]
sys.exit(not found)" && return
    kill -0 "$program" 2> /dev/null || return 1
    sleep 0.05
  done
  return 1
}
status=0
check() { # check WHAT COMMAND...
  local what=$1; shift
  if "$@"; then echo "ok   $what"; else echo "FAIL $what"; status=1; fi
}
check 'bytes on the host' seen on_host
sleep 1
touch "$steps/1"
check 'promoted' seen promotions
wait "$program"; check 'the program is right' grep -q PASS "$logs/conv2d.log"
python3 -c "print(f'     after {$(seconds) - $begin:.1f} s')"
wait "$holds"; check 'so is the other' test $? -eq 0
tail -n 1 "$logs/conv2d.log" "$logs/holds.log"
grep -E '^[^ ]+ (warning|error) ' "$logs/heddled.log" | tail -n 12
exit $status
