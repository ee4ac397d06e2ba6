# Altis' programs with managed memory, natively and under heddle (altis.py). ALTIS= names its repository's directory; SIZE=
# (1 to 4), ROUNDS=, ONLY=REGEX.
. "$(dirname "$0")/common.sh"
[ -d "${ALTIS:-}" ] || { echo 'ALTIS= must name the directory of utcs-scea/altis'; exit 1; }
start_heddled || exit 1
python3 "$(dirname "$0")/../altis.py" "$ALTIS" --heddle "$bin/heddle" --out "${ALTIS_OUT:-$logs/out}" --size "${SIZE:-1}" \
  --rounds "${ROUNDS:-3}" --only "${ONLY:-.}"
status=$?
echo "heddled's warnings:"; grep -E '^[^ ]+ (warning|error) ' "$logs/heddled.log" | tail -n 10
exit $status
