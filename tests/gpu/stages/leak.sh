# Device memory after many sessions equals before: what the driver says, with heddled idle both times.
. "$(dirname "$0")/common.sh"
sessions=${SESSIONS:-1000}
used() { nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | head -1; }
start_heddled || exit 1
run() { seq "$1" | xargs -P 8 -I{} timeout 60 "$bin/heddle" run -- "$workloads/vecadd_static" --size 1m --check none > "$logs/sessions.log" 2>&1; }
run 16
sleep 2
before=$(used)
run "$sessions"
sleep 3
after=$(used)
wrong=$(grep -c 'vecadd: [a-z]' "$logs/sessions.log")
echo "leak: $before MiB before, $after MiB after $sessions sessions; $wrong of them failed"
[ "$wrong" -eq 0 ] && [ $((after - before)) -le 16 ]
