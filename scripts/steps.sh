#!/bin/bash
# Runs targets of the Makefile one after the other, up to the first that fails. Before the last one it says what each
# step took, by the clock and of the processors (children that were waited for), so that the last step keeps the last
# word. Usage: steps.sh TARGET...
set -u
cd "$(dirname "$0")/.."
table='step                 wall   processors'$'\n'

# Processor time of all children so far, in seconds.
used() { awk -v tick="$(getconf CLK_TCK)" '{print int(($16 + $17) / tick)}' "/proc/$$/stat"; }

for (( step = 1; step <= $#; step++ )); do
  name=${!step}
  if (( step == $# && step > 1 )); then printf '\n%s\n' "$table"; fi
  SECONDS=0
  before=$(used)
  make --no-print-directory "$name"
  status=$?
  processors=$(( $(used) - before ))
  printf -v line '%-16s %5d:%02d      %4d:%02d\n' "$name" $((SECONDS / 60)) $((SECONDS % 60)) \
    $((processors / 60)) $((processors % 60))
  table+=$line
  if (( status != 0 )); then
    printf '\n%s%s failed (exit status %s)\n' "$table" "$name" "$status"
    exit "$status"
  fi
done
