# The papers' main experiments in small (experiments/reproduce --gpu): one to two minutes each. PAPERS= (default
# trem,eager,gemini,rain,case: with LIMIT= seconds of each, 115, all of them are to take some six minutes), CELLS= a regular expression
# of those to run, GPUS= how many (default 1), STRETCH= how much longer programs are watched. The reports go to this stage's
# logs and to the results as soon as there are any, also of a paper of which not everything ran, which fails the stage. A
# claim that is missed is a result.
. "$(dirname "$0")/common.sh"
reproduce=$(cd "$(dirname "$0")/../../.." && pwd)/experiments/reproduce
gpus=${GPUS:-1}
status=0
for paper in $(echo "${PAPERS:-trem,eager,gemini,rain,case}" | tr , ' '); do
  echo "== $paper"
  report=$logs/$paper-gpu.md
  rm -f "$report"
  # Told to end, it leaves what there is.
  timeout -k 30 "$((${LIMIT:-115} + 60))" python3 -B "$reproduce" "$paper" --gpu --mps "$HEDDLE_MPS" --gpus "$gpus" --first "${HEDDLE_GPU:-0}" \
    --limit "${LIMIT:-115}" --stretch "${STRETCH:-1}" ${CELLS:+--only "$CELLS"} --heddle "$bin/heddle" --workloads "$workloads" \
    --report "$logs" ${REHEARSE:+--rehearse} < /dev/null
  said=$?
  if [ $said -gt 1 ]; then echo "$paper: not everything ran (status $said)"; status=1; fi
  [ -s "$report" ] && [ -n "${HEDDLE_RESULT:-}" ] && { sed 's/^#/###/' "$report"; echo; } >> "$HEDDLE_RESULT"
done
exit $status
