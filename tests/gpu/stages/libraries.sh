# cuBLAS, cuRAND and cuFFT on the GPU: the e2e programs natively and under heddle. Each run checks its results against the host
# and prints a digest for each group of functions; heddle forwards to the same libraries, so the digests agree too.
. "$(dirname "$0")/common.sh"
programs=$HEDDLE_BUILD/tests/e2e/programs
libraries=$programs/libraries
[ -x "$libraries" ] || { echo "$libraries was not built: is libcublas in the toolkit?"; exit 1; }
start_heddled || exit 1
failed=0

# compare NAME [ARGUMENT for the native run]: the program natively and under heddle, and which digests differ. Which
# algorithm cuBLAS takes may depend on its workspace, so that other digests of it are shown and no failure.
compare() {
  if ! timeout 60 "$programs/$1" ${2:-} > "$logs/$1.native" 2>&1 < /dev/null; then
    echo "$1 natively:"; tail -n 20 "$logs/$1.native"; failed=1; return
  fi
  begin=$(seconds)
  if ! timeout 60 "$bin/heddle" run -- "$programs/$1" > "$logs/$1" 2> "$logs/$1.err" < /dev/null; then
    echo "$1 under heddle:"; tail -n 20 "$logs/$1" "$logs/$1.err"
    grep -iv ' \[info\] ' "$logs/heddled.log" | tail -n 20
    failed=1; return
  fi
  echo "$1: natively $(tail -n 1 "$logs/$1.native"), under heddle $(tail -n 1 "$logs/$1") in $(awk -v a="$begin" -v b="$(seconds)" 'BEGIN { printf "%.2f", b - a }') s, $(grep -c '[0-9a-f]\{16\}$' "$logs/$1") groups"
  diff "$logs/$1.native" "$logs/$1" | sed -n 's/^[<>]/  digests differ: &/p'
}

compare libraries
compare libraries_complex
compare libraries_batched
compare libraries_typed
compare libraries_old
compare library_graphs native
compare quasi_random
[ -x "$programs/fourier" ] && compare fourier

# cuRAND's sequences must agree.
sequences() { grep -h -i -E '^(random|philox|sobol|vectors)' "$@"; }
if diff <(sequences "$logs/libraries.native" "$logs/quasi_random.native") <(sequences "$logs/libraries" "$logs/quasi_random") > /dev/null; then
  echo 'cuRAND: the same sequences'
else
  echo 'cuRAND: other sequences than natively'
  failed=1
fi

# An address that is not the program's is an error of that program alone.
for program in libraries libraries_batched fourier; do
  [ -x "$programs/$program" ] || continue
  timeout 60 "$bin/heddle" run -- "$programs/$program" bad > "$logs/bad" 2>&1 < /dev/null
  tail -n 1 "$logs/bad"
  grep -q 'bad address: cudaError' "$logs/bad" && ! grep -q 'cudaSuccess' "$logs/bad" || failed=1
done
timeout 60 "$bin/heddle" run -- "$libraries" > "$logs/after" 2>&1 < /dev/null && grep -q PASS "$logs/after" || failed=1
exit $failed
