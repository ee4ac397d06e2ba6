# What the driver takes of the device's memory on a program's account (driver_memory.cu): natively by what is missing
# afterwards, under heddle by what the program is charged. A step that is charged less than it takes is a failure.
. "$(dirname "$0")/common.sh"
program=$HEDDLE_BUILD/tests/gpu/driver_memory
[ -x "$program" ] || { echo "$program was not built: the toolkit lacks cuBLAS or cuRAND"; exit 1; }
start_heddled || exit 1
status=0
steps='start;variable;local 256;local 1024;local 4096;local 16384;local 65536;stack 4096;stack 65536;heap 0;heap 64;heap 512
print 0;print 64;pending 2048;pending 32768;streams 1;streams 100;cublas-handle;cublas;curand'
printf '%-16s %12s %12s\n' step 'taken, MiB' 'charged, MiB'
while read -r step; do
  # shellcheck disable=SC2086
  taken=$(timeout 60 "$program" $step 2>&1 < /dev/null | tail -n 1)
  # shellcheck disable=SC2086
  charged=$(timeout 60 "$bin/heddle" run -- "$program" $step 2>&1 < /dev/null | tail -n 1)
  number() { printf '%s' "$1" | sed -n 's/.*: \(-\{0,1\}[0-9.]*\) MiB$/\1/p'; }
  t=$(number "$taken") c=$(number "$charged")
  printf '%-16s %12s %12s\n' "$step" "${t:-$taken}" "${c:-$charged}"
  # What a context takes anyway comes with the worker; 2 MiB is the driver's own grain.
  awk -v t="${t:-none}" -v c="${c:-none}" 'BEGIN { exit !(t != "none" && c != "none" && c + 2 >= t) }' ||
    { echo "  charged less than it takes"; status=1; }
done <<EOF_STEPS
$(echo "$steps" | tr ';' '\n')
EOF_STEPS
exit $status
