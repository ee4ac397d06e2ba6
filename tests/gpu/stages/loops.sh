# A program that allocates, works and frees in a loop (loops.cu): an iteration natively alone, under heddle alone, and
# among six of both kinds. ITERATIONS= (500).
. "$(dirname "$0")/common.sh"
times=${ITERATIONS:-500}
start_heddled || exit 1
# among N COMMAND...: N at once; the median of their iterations, of a cudaMalloc and of a cudaFree, in microseconds
among() {
  local n=$1; shift
  rm -f "$logs"/among.*
  for i in $(seq "$n"); do timeout 120 "$@" > "$logs/among.$i" 2>&1 < /dev/null & done
  wait $(jobs -pr)
  [ "$(cat "$logs"/among.* | grep -c 'allocate: .*PASS')" -eq "$n" ] || { cat "$logs"/among.* >&2; echo '- - -'; return; }
  for field in 1 5 9; do
    sed -n 's/^allocate: //p' "$logs"/among.* | awk -v f="$field" '{print $f}' | median
    echo ' '
  done | tr -d '\n'
}
printf '%-26s %12s %12s %12s\n' 'us (medians)' iteration cudaMalloc cudaFree
row() { # row NAME N COMMAND...: one line of the table; keeps the iteration in $iteration
  local name=$1; shift
  local cells
  cells=$(among "$@")
  # shellcheck disable=SC2086
  printf '%-26s %12s %12s %12s\n' "$name" $cells
  iteration=${cells%% *}
}
row 'native, alone' 1 "$loops" allocate "$times"; native_alone=$iteration
row 'heddle, alone' 1 "$bin/heddle" run -- "$loops" allocate "$times"; heddle_alone=$iteration
row 'native, six at once' 6 "$loops" allocate "$times"; native_six=$iteration
row 'heddle, six at once' 6 "$bin/heddle" run -- "$loops" allocate "$times"; heddle_six=$iteration
awk -v a="$native_alone" -v b="$heddle_alone" -v c="$native_six" -v d="$heddle_six" 'BEGIN {
  if (a == "-" || b == "-" || c == "-" || d == "-") { print "failed"; exit 1 }
  printf "an iteration, heddle over native: %.2f alone (goal 1.0), %.2f among six (goal 2.0)\n", b / a, d / c
  exit !(b <= a && d < 2 * c) }'
