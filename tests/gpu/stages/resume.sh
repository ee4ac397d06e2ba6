# A program's worker is killed between its steps, again and again, with a neighbour at work: another one goes on, and the
# program prints what it prints undisturbed (resume.py); variables lie elsewhere then, and it knows them by their names
# only. STEPS=
. "$(dirname "$0")/common.sh"
start_heddled || exit 1
programs=$HEDDLE_BUILD/tests/e2e/programs
python3 "$(dirname "$0")/../resume.py" "$programs/outlives" ${LIBRARIES:+"$programs/libraries_outlive"} --heddle "$bin/heddle" \
  --steps "${STEPS:-6}" --words names --neighbour "$HEDDLE_BUILD/tests/gpu/faults_static"
status=$?
grep -E '^[^ ]+ (warning|error) ' "$logs/heddled.log" | tail -n 12
exit $status
