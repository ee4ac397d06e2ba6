# Programs of other authors, six at once (strangers.py). STRANGERS= names the directory with hecbench/ and cuda-samples/;
# ONLY= and SHARE=I/N choose, WAYS=alone or WAYS=among leaves out the other, PASSES= says how often each runs among others,
# LIMIT= seconds leave out what is slow natively; LEVEL= is heddled's of durability;
# STOP_AFTER= seconds end it early (the next call goes on), STRANGERS_OUT= keeps what was built.
. "$(dirname "$0")/common.sh"
[ -d "${STRANGERS:-}" ] || { echo 'STRANGERS= must name the directory with hecbench/ and cuda-samples/'; exit 1; }
WARM_WORKERS=${WARM_WORKERS:-1}
start_heddled "${LEVEL:+[durability]
level = \"$LEVEL\"}" || exit 1
python3 "$(dirname "$0")/../strangers.py" "$STRANGERS" --heddle "$bin/heddle" --out "${STRANGERS_OUT:-$logs/out}" \
  --ways "${WAYS:-alone,among}" --only "${ONLY:-.}" --share "${SHARE:-1/1}" --stop-after "${STOP_AFTER:-400}" --limit "${LIMIT:-30}" --passes "${PASSES:-2}"
status=$?
echo "heddled's warnings:"; grep -E '^[^ ]+ (warning|error) ' "$logs/heddled.log" | tail -n 10
exit $status
