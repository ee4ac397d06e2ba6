# What the stages share. Sourced with HEDDLE_BUILD, HEDDLE_LOGS and HEDDLE_MPS set by run.sh.
set -u
bin=$HEDDLE_BUILD/bin
workloads=$HEDDLE_BUILD/workloads
stage=$(basename "$0" .sh)
logs=$HEDDLE_LOGS/$stage
mkdir -p "$logs"
# A bundle brings the libraries that heddle's programs need and the machine may lack.
[ -n "${HEDDLE_DEPS:-}" ] && export LD_LIBRARY_PATH=$HEDDLE_DEPS${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

seconds() { date +%s.%N; }

# start_heddled [TOML of the [[gpu]] table] [TOML of [daemon]]: a heddled of the stage's own; it ends with the stage.
start_heddled() {
  directory=$(mktemp -d /tmp/heddle-run-XXXXXX)
  export HEDDLE_SOCKET=$directory/control XDG_RUNTIME_DIR=$directory
  cat > "$directory/heddle.toml" <<TOML
[daemon]
log_level = "info"
log_file = "$logs/heddled.log"
warm_workers = ${WARM_WORKERS:-1}
${2:-}
[[gpu]]
mps = "$HEDDLE_MPS"
${1:-}
TOML
  trap stop_heddled EXIT
  "$bin/heddle" daemon start --config "$directory/heddle.toml" ${POLICY:+--policy "$POLICY"} || {
    echo 'heddled does not start:'; tail -n 30 "$logs/heddled.log"; return 1; }
  # Its first worker says which addresses the GPU leaves to programs.
  for _ in $(seq 1 100); do
    warm=$("$bin/heddle" devices --json 2>/dev/null | tr ',{}' '\n' | sed -n 's/.*"warm_workers": *\([0-9]*\).*/\1/p' | head -1)
    [ "${warm:-0}" -gt 0 ] && return 0
    sleep 0.1
  done
  echo 'no worker is warm after 10 s:'; tail -n 30 "$logs/heddled.log"
  return 1
}
stop_heddled() {
  [ -n "${directory:-}" ] || return 0
  "$bin/heddle" daemon stop >/dev/null 2>&1
  rm -rf "$directory"
  directory=
}
