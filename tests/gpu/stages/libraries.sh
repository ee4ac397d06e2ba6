# cuBLAS and cuRAND on the GPU: the e2e program natively and under heddle. Each run checks its results against the host
# and prints a digest for each group of functions; heddle forwards to the same libraries, so the digests agree too.
. "$(dirname "$0")/common.sh"
libraries=$HEDDLE_BUILD/tests/e2e/programs/libraries
[ -x "$libraries" ] || { echo "$libraries was not built: is libcublas in the toolkit?"; exit 1; }
start_heddled || exit 1

timeout 120 "$libraries" > "$logs/native" 2>&1 < /dev/null || { echo 'natively:'; tail -n 20 "$logs/native"; exit 1; }
echo "natively: $(tail -n 1 "$logs/native")"
begin=$(seconds)
if ! timeout 120 "$bin/heddle" run -- "$libraries" > "$logs/heddle" 2> "$logs/heddle.err" < /dev/null; then
  echo 'under heddle:'; tail -n 20 "$logs/heddle" "$logs/heddle.err"
  grep -iv ' \[info\] ' "$logs/heddled.log" | tail -n 20
  exit 1
fi
echo "under heddle: $(tail -n 1 "$logs/heddle") in $(awk -v a="$begin" -v b="$(seconds)" 'BEGIN { printf "%.2f", b - a }') s"

# Which algorithm cuBLAS takes may depend on its workspace, so that other digests of it are shown and no failure; cuRAND's
# sequences must agree.
echo 'groups whose digests differ (cuBLAS may sum in another order):'
diff "$logs/native" "$logs/heddle" | sed -n 's/^[<>]/  &/p'
if diff <(grep -i -E '^(random|philox)' "$logs/native") <(grep -i -E '^(random|philox)' "$logs/heddle") > /dev/null; then
  echo 'cuRAND: the same sequences'
else
  echo 'cuRAND: other sequences than natively'
  exit 1
fi

# An address that is not the program's is an error of that program alone.
timeout 60 "$bin/heddle" run -- "$libraries" bad > "$logs/bad" 2>&1 < /dev/null
tail -n 1 "$logs/bad"
grep -q 'bad address: cudaError' "$logs/bad" && ! grep -q 'cudaSuccess' "$logs/bad" || exit 1
timeout 120 "$bin/heddle" run -- "$libraries" > "$logs/after" 2>&1 < /dev/null && grep -q PASS "$logs/after"
