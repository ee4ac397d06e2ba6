# One program alone: the wall time of the whole process under heddle over that natively, medians of several runs.
. "$(dirname "$0")/common.sh"
runs=${RUNS:-5}
wall() { # wall COMMAND...: the median of the wall times, in seconds; "-" where a run fails
  local begin times=$logs/times
  : > "$times"
  for _ in $(seq "$runs"); do
    begin=$(seconds)
    timeout 60 "$@" > "$logs/last.log" 2>&1 < /dev/null || { cp "$logs/last.log" "$logs/failed-$(basename "$1").log"; echo -; return; }
    awk -v a="$begin" -v b="$(seconds)" 'BEGIN { print b - a }' >> "$times"
  done
  median < "$times"
}
inner() { sed -n 's/^loops: [a-z]*: \([0-9.]*\) s.*/\1/p' "$logs/last.log"; }
start_heddled || exit 1
printf '%-58s %9s %9s %7s\n' 'program' 'native s' 'heddle s' 'ratio'
while read -r name options; do
  [ -n "$name" ] || continue
  path=$(program "$name")
  # shellcheck disable=SC2086
  native=$(wall "$path" $options); native_inner=$(inner)
  # shellcheck disable=SC2086
  under=$(wall "$bin/heddle" run -- "$path" $options); under_inner=$(inner)
  awk -v p="$name $options" -v n="$native" -v h="$under" -v ni="${native_inner:-}" -v hi="${under_inner:-}" 'BEGIN {
    if (n == "-" || h == "-") { printf "%-58s %9s %9s %7s\n", p, n, h, "failed"; exit }
    printf "%-58s %9.4f %9.4f %7.3f\n", p, n, h, h / n
    if (ni > 0 && hi > 0) printf "%-58s %9.4f %9.4f %7.3f\n", "  the loop itself", ni, hi, hi / ni }' | tee -a "$logs/table"
done < <(printf 'loops %s\n' 'launch 100000' 'sync 20000' 'copy 512 4' 'compute 40'; timed_workloads)
ratios() { awk '!/the loop itself|failed/ { print $NF }' "$logs/table"; }
printf 'median %.3f, worst %.3f of %d programs\n' "$(ratios | median)" "$(ratios | sort -n | tail -n 1)" "$(ratios | wc -l)"
[ -s "$logs/table" ] && ! grep -q failed "$logs/table"
