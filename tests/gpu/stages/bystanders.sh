# One program's fault ends every worker of the GPU (HEDDLE_MPS=on or auto): four neighbours in the middle of their kernels go on to
# right results, and compute again within a second (faults.py --survive). ROUNDS= of each kind (default 5; each takes
# about 12 s), KINDS=address,assert,trap,misaligned;
# PINNED= of the four update pinned memory, which only HEDDLE_MPS=auto has survive; LEVEL= is heddled's of durability.
. "$(dirname "$0")/common.sh"
WARM_WORKERS=4
start_heddled '[durability]
level = "'"${LEVEL:-full}"'"' || exit 1
python3 "$(dirname "$0")/../faults.py" "$HEDDLE_BUILD/tests/gpu/faults_static" --heddle "$bin/heddle" --rounds "${ROUNDS:-5}" \
  --pinned "${PINNED:-0}" --kinds "${KINDS:-address,assert,trap,misaligned}" --stop-after "${STOP_AFTER:-450}" --survive
status=$?
echo "heddled's warnings:"; grep -E '^[^ ]+ (warning|error) ' "$logs/heddled.log" | tail -n 12
exit $status
