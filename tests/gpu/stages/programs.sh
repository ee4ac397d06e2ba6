# The small programs of tests/e2e that show a part of the runtime each, natively and under heddle on the GPU: each checks
# itself, and both runs print the same.
. "$(dirname "$0")/common.sh"
start_heddled || exit 1
passed=0 all=0
while read -r name options; do
  all=$((all + 1))
  program=$HEDDLE_BUILD/tests/e2e/programs/$name
  # shellcheck disable=SC2086
  timeout 60 "$program" $options > "$logs/$name.native" 2>&1 < /dev/null
  native=$?
  begin=$(seconds)
  # shellcheck disable=SC2086
  timeout 60 "$bin/heddle" run -- "$program" $options > "$logs/$name.out" 2> "$logs/$name.err" < /dev/null
  status=$?
  took=$(awk -v a="$begin" -v b="$(seconds)" 'BEGIN { printf "%.2f", b - a }')
  said=$(head -n 1 "$logs/$name.out")
  # What pools reserve is NVIDIA's business natively: the program's bound is heddle's.
  if [ $status -eq 0 ] && { [ "$name" = pools ] || cmp -s "$logs/$name.native" "$logs/$name.out"; }; then
    passed=$((passed + 1))
    echo "ok   $took s  $name $options: $said"
  else
    echo "FAIL $took s  $name $options: status $status, natively $native: $(head -n 1 "$logs/$name.native")"
    head -n 6 "$logs/$name.out" "$logs/$name.err" | sed 's/^/       /'
  fi
done <<'LIST'
textures
pools
graphs
graph_memory
graph_conditions
graph_conditions_ptx
grid_sync
grid_sync ordinary
limits
limits overflow
reset
growing
driver_buffers
driver_contexts
driver_mixed
driver_modules
LIST
echo "programs: $passed of $all as natively"
[ "$passed" -eq "$all" ] || { echo 'heddled:'; grep -iv ' \[info\] ' "$logs/heddled.log" | tail -n 20; exit 1; }
