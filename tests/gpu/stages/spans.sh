# Where the time of a whole process goes, at 1, 6 and 24 at once, natively and under heddle (spans.py). PASSES= (3).
. "$(dirname "$0")/common.sh"
start_heddled || exit 1
python3 "$(dirname "$0")/../spans.py" "$HEDDLE_BUILD/tests/gpu/spans_static" --heddle "$bin/heddle" --passes "${PASSES:-3}"
