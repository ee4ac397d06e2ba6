# Programs as heddle cc compiled them, against the same compiled by nvcc: wall time of the whole process natively, where
# the probes find no heddle, and under heddle; and what a probe costs. The binaries come with the bundle
# (scripts/gpu-bundle.sh, target gpu_compiled). RUNS= runs of each (default 7), the four ways in turn; medians.
. "$(dirname "$0")/common.sh"
runs=${RUNS:-7}
compiled=${HEDDLE_COMPILED:-$(cd "$(dirname "$0")/../../.." && pwd)/compiled}
[ -d "$compiled" ] || compiled=$HEDDLE_BUILD/tests/gpu/compiled
[ -x "$compiled/tasks_heddle" ] || { echo "no binaries in $compiled: build the target gpu_compiled and pack it"; exit 1; }
start_heddled || exit 1

# once FILE COMMAND...: appends the wall time of a run to FILE, or "-"; its output is in $logs/last.log
once() {
  local file=$1 begin; shift
  begin=$(seconds)
  if timeout 60 "$@" > "$logs/last.log" 2>&1 < /dev/null && grep -q PASS "$logs/last.log"; then
    awk -v a="$begin" -v b="$(seconds)" 'BEGIN { print b - a }' >> "$file"
  else
    cp "$logs/last.log" "$logs/failed-$(basename "$file").log"
    echo - >> "$file"
  fi
}
median_of() { if grep -q -- - "$1"; then echo -; else median < "$1"; fi; }  # median_of FILE: of what once() wrote

printf '%-44s %9s %9s %9s %9s %7s %7s\n' program 'native' 'cc' 'heddle' 'cc+heddle' 'native' 'heddle'
while read -r name options; do
  for _ in $(seq "$runs"); do
    # shellcheck disable=SC2086
    for by in nvcc heddle; do
      once "$logs/$name-native-$by" "$compiled/${name}_$by" $options
      once "$logs/$name-run-$by" "$bin/heddle" run -- "$compiled/${name}_$by" $options
    done
  done
  awk -v p="$name $options" -v a="$(median_of "$logs/$name-native-nvcc")" -v b="$(median_of "$logs/$name-native-heddle")" \
    -v c="$(median_of "$logs/$name-run-nvcc")" -v d="$(median_of "$logs/$name-run-heddle")" 'BEGIN {
    if (a == "-" || b == "-" || c == "-" || d == "-") { printf "%-44s failed\n", p; exit }
    printf "%-44s %9.4f %9.4f %9.4f %9.4f %7.3f %7.3f\n", p, a, b, c, d, b / a, d / c }' | tee -a "$logs/table"
done < <(timed_workloads)
ratios() { awk -v back="$1" '!/failed/ { print $(NF - back) }' "$logs/table"; }  # ratios BACK: columns from the last
printf 'heddle cc over nvcc: median %.3f natively, %.3f under heddle, of %d programs (goal 1.010)\n' \
  "$(ratios 1 | median)" "$(ratios 0 | median)" "$(ratios 0 | wc -l)"

# The loop of the program itself, in microseconds a task.
inner() { sed -n 's/.* \([0-9.]*\) us each.*/\1/p' "$logs/last.log"; }
for way in native run; do
  for _ in $(seq "$runs"); do
    for by in nvcc heddle; do
      if [ $way = native ]; then once "$logs/tasks-$way-$by" "$compiled/tasks_$by" 2000
      else once "$logs/tasks-$way-$by" "$bin/heddle" run -- "$compiled/tasks_$by" 500; fi
      inner >> "$logs/each-$way-$by"
    done
  done
  awk -v w=$way -v a="$(median_of "$logs/each-$way-nvcc")" -v b="$(median_of "$logs/each-$way-heddle")" 'BEGIN {
    printf "a task, %s: %.2f us by nvcc, %.2f us by heddle cc: a probe costs %.2f us\n", w == "run" ? "under heddle" : "natively", a, b, b - a }'
done
! grep -q failed "$logs/table" && ! grep -q -- - "$logs"/tasks-*-*
