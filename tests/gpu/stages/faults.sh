# After a fault of each kind, with five neighbours at work: how long until a new program has its result (faults.py).
# ROUNDS= of each kind (default 5; each takes about 5 s), KINDS=address,assert,trap,misaligned,killed.
. "$(dirname "$0")/common.sh"
start_heddled || exit 1
python3 "$(dirname "$0")/../faults.py" "$HEDDLE_BUILD/tests/gpu/faults_static" --heddle "$bin/heddle" --rounds "${ROUNDS:-5}" \
  ${KINDS:+--kinds "$KINDS"} --stop-after "${STOP_AFTER:-450}"
status=$?
echo "heddled's warnings:"; grep -E '^[^ ]+ (warning|error) ' "$logs/heddled.log" | tail -n 12
exit $status
