# Managed memory: a program that checks what host and device see of it (managed.cu), and how long iterations take on it
# where the host touches nothing, a word, or all of it in between (managed_loop.cu), natively and under heddle. MIB= (64).
. "$(dirname "$0")/common.sh"
start_heddled || exit 1
programs=$HEDDLE_BUILD/tests/e2e/programs
status=0
for way in natively under-heddle; do
  [ $way = natively ] && run= || run="$bin/heddle run --"
  for program in managed "managed_loop 20 ${MIB:-64}"; do
    echo "$way, $program:"
    # shellcheck disable=SC2086
    timeout 120 $run "$programs"/$program > "$logs/$way" 2>&1 < /dev/null
    ended=$?
    tail -n 12 "$logs/$way" | sed 's/^/  /'
    # What managed.cu says natively is the driver's business, and no fault of heddle's.
    [ $ended -eq 0 ] || { echo "  status $ended"; [ $way = natively ] || status=1; }
  done
done
grep -iv ' \[info\] \| info ' "$logs/heddled.log" | tail -n 10
exit $status
