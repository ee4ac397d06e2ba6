# One program alone: the wall time of the whole process under heddle over that natively, medians of several runs.
. "$(dirname "$0")/common.sh"
runs=${RUNS:-5}
wall() { # wall COMMAND...: the median of the wall times, in seconds; "-" where a run fails
  for _ in $(seq "$runs"); do
    begin=$(seconds)
    timeout 60 "$@" > "$logs/last.log" 2>&1 < /dev/null || { cp "$logs/last.log" "$logs/failed-$(basename "$1").log"; echo -; return; }
    echo "$begin $(seconds)"
  done | awk '{ if ($1 == "-") bad = 1; else t[NR] = $2 - $1 }
    END { if (bad) { print "-"; exit } n = asort_(t, NR); printf "%.4f\n", t[int((NR + 1) / 2)] }
    function asort_(a, n, i, j, x) { for (i = 2; i <= n; i++) { x = a[i]; for (j = i - 1; j > 0 && a[j] > x; j--) a[j + 1] = a[j]; a[j + 1] = x } return n }'
}
inner() { sed -n 's/^loops: [a-z]*: \([0-9.]*\) s.*/\1/p' "$logs/last.log"; }
start_heddled || exit 1
printf '%-58s %9s %9s %7s\n' 'program' 'native s' 'heddle s' 'ratio'
while read -r name options; do
  [ -n "$name" ] || continue
  # shellcheck disable=SC2086
  native=$(wall "$workloads/${name}_static" $options); native_inner=$(inner)
  # shellcheck disable=SC2086
  under=$(wall "$bin/heddle" run -- "$workloads/${name}_static" $options); under_inner=$(inner)
  awk -v p="$name $options" -v n="$native" -v h="$under" -v ni="${native_inner:-}" -v hi="${under_inner:-}" 'BEGIN {
    if (n == "-" || h == "-") { printf "%-58s %9s %9s %7s\n", p, n, h, "failed"; exit }
    printf "%-58s %9.4f %9.4f %7.3f\n", p, n, h, h / n
    if (ni > 0 && hi > 0) printf "%-58s %9.4f %9.4f %7.3f\n", "  the loop itself", ni, hi, hi / ni }' | tee -a "$logs/table"
done <<'LIST'
loops launch 100000
loops sync 20000
loops copy 512 4
loops compute 40
vecadd --size 16m --check sample
backprop --inputs 1m --hidden 16 --check sample
bfs --nodes 1m --degree 8
conv2d --width 4096 --height 4096 --check sample
dwt2d --width 4096 --height 4096 --check sample
lavamd --boxes 16 --particles 64 --check sample
mm2 --rows 2048 --inner 2048 --columns 2048 --check sample
needle --length 8192
srad_v1 --rows 2048 --columns 2048 --iterations 50 --check sample
srad_v2 --rows 2048 --columns 2048 --iterations 10 --check sample
LIST
awk '!/the loop itself|failed/ { r[n++] = $NF } END { for (i = 1; i < n; i++) { x = r[i]; for (j = i - 1; j >= 0 && r[j] > x; j--) r[j + 1] = r[j]; r[j + 1] = x }
  printf "median %.3f, worst %.3f of %d programs\n", r[int((n - 1) / 2)], r[n - 1], n }' "$logs/table"
! grep -q failed "$logs/table"
