# What programs get of the GPU under each dispatch policy while all of them always have work, against what they asked for
# (shares.py: CASES=, WINDOW= seconds), and what exclusive dispatch costs a program that is alone, `fs` over `open`.
. "$(dirname "$0")/common.sh"
cat > "$logs/node.toml" <<TOML
[daemon]
log_level = "info"
log_file = "$logs/heddled.log"
[[gpu]]
mps = "$HEDDLE_MPS"
${HEDDLE_GPU:+index = $HEDDLE_GPU}
TOML
python3 "$(dirname "$0")/../shares.py" "$workloads/episodes_static" --heddle "$bin/heddle" --config "$logs/node.toml" \
  --seconds "${WINDOW:-10}" ${CASES:+--only "$CASES"}
status=$?

# The seconds of the loop itself, the median of RUNS= (default 5). Each begins with a worker that stands ready and nothing
# else going on: while the next context is made, whoever computes in time slices waits for a quarter of a second.
loop() { for _ in $(seq "${RUNS:-5}"); do wait_for_warm; sleep 0.3; "$bin/heddle" run -- "$loops" "$@" | sed -n 's/^loops: [a-z]*: \([0-9.]*\) s.*PASS/\1/p'; done | median; }
measure() { for what in 'launch 100000' 'sync 20000' 'copy 512 4' 'compute 40'; do loop $what; echo; done; }
for policy in open fs; do
  start_heddled "[dispatch]
policy = \"$policy\"" || exit 1
  measure > "$logs/alone-$policy"
  stop_heddled
done
paste <(printf '%s\n' launch sync copy compute) "$logs/alone-open" "$logs/alone-fs" |
  awk '{ printf "alone: %-8s open %9.5f s, fs over open %.3f (goal 1.02)\n", $1, $2, $3 / $2; if ($3 / $2 > 1.02) missed = 1 } END { exit missed }' ||
  status=1
exit $status
