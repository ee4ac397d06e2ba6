# What the driver takes of the device's memory on a program's account (driver_memory.cu): natively by what is missing
# afterwards, under heddle by what the program is charged. A step that is charged less than it takes is a failure.
. "$(dirname "$0")/common.sh"
program=$HEDDLE_BUILD/tests/gpu/driver_memory
[ -x "$program" ] || { echo "$program was not built: the toolkit lacks cuBLAS or cuRAND"; exit 1; }
number() { sed -n 's/.*: \(-\{0,1\}[0-9.]*\) MiB$/\1/p'; }
status=0
steps='start;local 256;local 1024;local 4096;local 16384;local 65536;stack 4096;stack 65536;heap 0;heap 64;heap 512
print 0;print 64;pending 2048;pending 32768;streams 1;streams 100;cublas;curand'
# Natively first, without heddled, whose workers come and go.
while read -r step; do
  # shellcheck disable=SC2086
  timeout 60 "$program" $step 2>&1 < /dev/null | tail -n 1 | grep . || echo "no answer"
done <<< "$(echo "$steps" | tr ';' '\n')" > "$logs/natively"
start_heddled || exit 1
printf '%-16s %12s %12s\n' step 'taken, MiB' 'charged, MiB'
while read -r step && read -r taken <&3; do
  # shellcheck disable=SC2086
  charged=$(timeout 60 "$bin/heddle" run -- "$program" $step 2>&1 < /dev/null 3<&- | tail -n 1)
  t=$(echo "$taken" | number) c=$(echo "$charged" | number)
  printf '%-16s %12s %12s\n' "$step" "${t:-$taken}" "${c:-$charged}"
  # Sums below 8 MiB are not charged. Of what the first launch takes, 140 MiB come with the context.
  case $step in start | heap*) apart=148 ;; *) apart=8 ;; esac
  awk -v t="${t:-none}" -v c="${c:-none}" -v apart=$apart \
    'BEGIN { exit !(t != "none" && c != "none" && c + apart >= t) }' ||
    { echo "  charged less than it takes"; status=1; }
done <<< "$(echo "$steps" | tr ';' '\n')" 3< "$logs/natively"
exit $status
