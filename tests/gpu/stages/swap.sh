# A job's memory leaves the GPU for swap space and comes back, beside a program that computes (swap.py). MIB= (default
# 8192), ROUNDS= (default 5). Goal: 45 GB/s each way.
. "$(dirname "$0")/common.sh"
start_heddled "[swap]
host = \"$(( ${MIB:-8192} + 1024 ))M\"
pinned = \"$(( ${MIB:-8192} + 1024 ))M\"" || exit 1
python3 "$(dirname "$0")/../swap.py" "$HEDDLE_BUILD/tests/e2e/programs/holds" --heddle "$bin/heddle" --log "$logs/heddled.log" \
  --neighbour "$HEDDLE_BUILD/tests/gpu/faults_static" --mib "${MIB:-8192}" --rounds "${ROUNDS:-5}"
status=$?
"$bin/heddle" devices
grep -E '^[^ ]+ (warning|error) ' "$logs/heddled.log" | tail -n 12
exit $status
