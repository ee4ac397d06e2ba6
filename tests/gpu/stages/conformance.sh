# The suite that CI runs on software devices, on the GPU: every test in a process of its own, four at a time.
. "$(dirname "$0")/common.sh"
export HEDDLE_CONFORMANCE_PTX=${HEDDLE_CONFORMANCE_PTX:-$(dirname "$0")/../../conformance/kernels.ptx}
export CUDA_MPS_PIPE_DIRECTORY=/nonexistent
suite=$bin/conformance_test
"$suite" --gtest_list_tests --gtest_filter='*/Cuda*' 2>/dev/null |
  awk '/^[^ ]/ {suite=$1} /^ / {print suite $1}' > "$logs/tests"
[ -s "$logs/tests" ] || { echo 'the suite has no tests'; exit 1; }
one() {
  local test=$1 log=$2/$(echo "$1" | tr / _).log
  timeout --kill-after=5 75 "$suite" --gtest_filter="$test" --gtest_output="xml:$log.xml" > "$log" 2>&1 < /dev/null
  local status=$?
  if grep -q '^\[  SKIPPED \]' "$log"; then echo "SKIP $test: $(grep -v '^\[' "$log" | tail -n 3 | tr '\n' ' ')"
  elif [ $status -eq 0 ] && grep -q '^\[  PASSED  \] 1 test' "$log"; then echo "ok   $test"
  else
    echo "FAIL $test (status $status)"
    { sed -n 's/.*message="\([^"]*\)".*/\1/p' "$log.xml" 2>/dev/null; grep -v '^\[\|^Note\|^$' "$log"; } | head -n 12 | sed 's/^/       /'
  fi
}
export -f one
export suite
xargs -P 4 -I{} bash -c 'one "$1" "$2"' _ {} "$logs" < "$logs/tests" > "$logs/verdicts"
grep -A 12 '^FAIL' "$logs/verdicts" | grep -v '^ok'
grep '^SKIP' "$logs/verdicts"
passed=$(grep -c '^ok' "$logs/verdicts") skipped=$(grep -c '^SKIP' "$logs/verdicts") all=$(wc -l < "$logs/tests")
echo "conformance: $passed of $all passed, $skipped skipped"
[ $((passed + skipped)) -eq "$all" ]
