# Device memory after many sessions equals before: what the driver says, and heddled, idle both times. The keeper is
# killed before the driver is asked, since it keeps memory ready: that must be free with it.
. "$(dirname "$0")/common.sh"
sessions=${SESSIONS:-1000}
used() { nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | head -1; }
start_heddled || exit 1
one() { timeout 60 "$1/heddle" run -- "$2/vecadd_static" --size 1m --check none > "$3.$$" 2>&1 < /dev/null && rm "$3.$$"; }
export -f one
run() { seq "$1" | xargs -P 8 -I{} bash -c 'one "$@"' _ "$bin" "$workloads" "$logs/session"; }
run 16
drop_kept() { kill -KILL $(pgrep -P "$(heddled_process)" heddle-keeper); sleep 2; }
drop_kept
before=$(used)
begin=$(seconds)
run "$sessions"
took=$(awk -v a="$begin" -v b="$(seconds)" 'BEGIN { printf "%.1f", b - a }')
drop_kept
after=$(used)
wrong=$(find "$logs" -name 'session.*' | wc -l)
held=$("$bin/heddle" devices --json | tr ',{}' '\n' | sed -n 's/.*"used": *\([0-9]*\).*/\1/p' | head -1)
echo "leak: $before MiB before, $after MiB after $sessions sessions in $took s; $wrong of them failed; heddled counts $held bytes in use"
[ -n "$before" ] && [ "$wrong" -eq 0 ] && [ "$held" = 0 ] && [ $((after - before)) -le 16 ]
