#!/bin/bash
# What heddle does on a real GPU, stage by stage. Usage: run.sh STAGE... (README.md lists them)
#
# Environment:
#   HEDDLE_BUILD     where heddle was built (default: build/dev), or a bundle that scripts/gpu-bundle.sh packed
#   HEDDLE_RESULTS   where results go (default: docs/results): one file a run, one section a stage
#   HEDDLE_LOGS      where everything else goes (default: a new directory in /tmp): logs of heddled, of each program
#   HEDDLE_MPS       on, off or auto (default off): how the stages' heddled shares the GPU
#   HEDDLE_GPU       the number of the one GPU that the stages' heddled uses (default: all that there are)
# A stage that has passed in this HEDDLE_LOGS is not run again. Exit status: 0 when all stages passed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
export HEDDLE_BUILD=${HEDDLE_BUILD:-$root/build/dev}
export HEDDLE_RESULTS=${HEDDLE_RESULTS:-$root/docs/results}
export HEDDLE_LOGS=${HEDDLE_LOGS:-$(mktemp -d /tmp/heddle-gpu-XXXXXX)}
export HEDDLE_MPS=${HEDDLE_MPS:-off}
mkdir -p "$HEDDLE_RESULTS" "$HEDDLE_LOGS"
[ -d "$HEDDLE_BUILD/deps" ] && export HEDDLE_DEPS=$HEDDLE_BUILD/deps

commit=$(cat "$root/COMMIT" 2>/dev/null || git -C "$root" rev-parse --short HEAD 2>/dev/null || echo unknown)
gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1)
export HEDDLE_RESULT=${HEDDLE_RESULT:-$HEDDLE_RESULTS/$(date -u +%Y-%m-%d)-gpu.md}
heading() {
  printf '\n## %s: %s\n\n%s, commit %s, mps %s\n\n' "$1" "$(date -u '+%Y-%m-%d %H:%M UTC')" "${gpu:-no GPU}" "$commit" \
    "$HEDDLE_MPS" >> "$HEDDLE_RESULT"
}

[ $# -gt 0 ] || { sed -n '2,12s/^# \{0,1\}//p' "$0"; ls "$here/stages" | sed -n 's/\.sh$//p'; exit 64; }
failed=0
for stage in "$@"; do
  script=$here/stages/$stage.sh
  [ -f "$script" ] || { echo "no such stage: $stage" >&2; exit 64; }
  if [ -e "$HEDDLE_LOGS/$stage.passed" ]; then echo "== $stage: passed before"; continue; fi
  echo "== $stage (logs: $HEDDLE_LOGS/$stage)"
  mkdir -p "$HEDDLE_LOGS/$stage"
  heading "$stage"
  begin=$(date +%s)
  if bash "$script" 2>&1 | tee "$HEDDLE_LOGS/$stage/output"; [ "${PIPESTATUS[0]}" -eq 0 ]; then
    touch "$HEDDLE_LOGS/$stage.passed"
    verdict=passed
  else
    failed=1
    verdict='NOT passed'
  fi
  { echo '```'; tail -n 80 "$HEDDLE_LOGS/$stage/output"; echo '```'; echo "$verdict after $(($(date +%s) - begin)) s"; } >> "$HEDDLE_RESULT"
  echo "== $stage: $verdict after $(($(date +%s) - begin)) s"
done
exit $failed
