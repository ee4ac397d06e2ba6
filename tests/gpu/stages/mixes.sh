# Sixteen jobs of 1 to 13 GB on one device that is limited to 16 GiB, under each policy (POLICIES=), and as they would
# run without heddle: one after the other, and all at once.
. "$(dirname "$0")/common.sh"
mix=$logs/mix.toml
sed "s|@WORKLOADS@|$workloads|" "$(dirname "$0")/../mix.toml.in" > "$mix"
policies=${POLICIES:-sa,mgb-warps}
WARM_WORKERS=2
start_heddled "memory = \"16G\"
${CONTEXT_MEMORY:+context_memory = \"$CONTEXT_MEMORY\"}" || exit 1
"$bin/heddle" devices
timeout "${LIMIT:-420}" "$bin/heddle" batch "$mix" --policy "$policies" --workers auto --output "$logs/output" \
  --json-file "$logs/result.json" < /dev/null
status=$?
stop_heddled
[ "${NATIVE:-}" ] || exit $((status > 1))
commands() { sed -n 's/^command = \[\(.*\)\]/\1/p' "$mix" | tr -d '",'; }
begin=$(seconds)
commands | while read -r command; do $command; done > "$logs/native-one-by-one.log" 2>&1
one=$(seconds)
commands | xargs -P 16 -I{} sh -c '{}' > "$logs/native-at-once.log" 2>&1
awk -v a="$begin" -v b="$one" -v c="$(seconds)" -v crashes="$(grep -c 'out of memory' "$logs/native-at-once.log")" 'BEGIN {
  printf "native: one after the other %.1f s; all at once %.1f s, %d out of memory (on the whole card)\n", b - a, c - b, crashes }'
exit $((status > 1))
