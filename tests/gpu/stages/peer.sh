# Copies between two devices of a program (peer.cu): natively where there are two GPUs, and under heddle, where a keeper
# has to have done them. Where there is one GPU, or HEDDLE_GPU names one, heddle offers it as two devices.
# PEER_MIB= and PEER_COPIES= say how much.
. "$(dirname "$0")/common.sh"
peer=$HEDDLE_BUILD/tests/gpu/peer_static
size=${PEER_MIB:-1024} copies=${PEER_COPIES:-10}
[ -x "$peer" ] || { echo "$peer was not built"; exit 1; }
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')

if [ "${HEDDLE_GPU:-}" ] || [ "$gpus" -lt 2 ]; then
  memory="$((size * 2 + 256))M"
  HEDDLE_MPS=off HEDDLE_GPU=${HEDDLE_GPU:-0}  # one MPS control daemon a GPU
  start_heddled "memory = \"$memory\"
[[gpu]]
index = $HEDDLE_GPU
memory = \"$memory\"" || exit 1
else
  timeout 120 "$peer" "$size" "$copies" > "$logs/native" 2>&1 < /dev/null || { echo 'natively:'; cat "$logs/native"; exit 1; }
  echo "natively: $(tail -n 1 "$logs/native")"
  start_heddled || exit 1
fi

if ! timeout 300 "$bin/heddle" run -- "$peer" "$size" "$copies" > "$logs/heddle" 2>&1 < /dev/null; then
  echo 'under heddle:'; tail -n 20 "$logs/heddle"
  tail -n 20 "$logs/heddled.log"
  exit 1
fi
echo "under heddle: $(tail -n 1 "$logs/heddle")"
done_by_keepers=$("$bin/heddle" devices --json | tr ',{}' '\n' |
  sed -n 's/.*"keeper_copies": *\([0-9]*\).*/\1/p' | awk '{ sum += $1 } END { print sum + 0 }')
echo "copies by keepers: $done_by_keepers, $((copies + 1)) were asked for"
[ "$done_by_keepers" -eq $((copies + 1)) ]
