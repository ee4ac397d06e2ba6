# What the stages share. Sourced with HEDDLE_BUILD, HEDDLE_LOGS and HEDDLE_MPS set by run.sh.
set -u
bin=$HEDDLE_BUILD/bin
workloads=$HEDDLE_BUILD/workloads
loops=$HEDDLE_BUILD/tests/gpu/loops_static  # loops.cu of this directory
stage=${HEDDLE_STAGE:-$(basename "$0" .sh)}
logs=$HEDDLE_LOGS/$stage
mkdir -p "$logs"
# A bundle brings the libraries that heddle's programs need and the machine may lack.
[ -n "${HEDDLE_DEPS:-}" ] && export LD_LIBRARY_PATH=$HEDDLE_DEPS${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

seconds() { date +%s.%N; }
# The path of a program of workloads/, or of this directory.
program() { if [ "$1" = loops ]; then echo "$loops"; else echo "$workloads/${1}_static"; fi; }

# The workloads that stages take the time of, one a line, with their options.
timed_workloads() {
  cat <<'LIST'
backprop --inputs 1m --hidden 16 --check sample
bfs --nodes 1m --degree 8
blackscholes --size 16m --iterations 64 --check sample
conv2d --width 4096 --height 4096 --check sample
dwt2d --width 4096 --height 4096 --check sample
dxtc --width 2048 --height 2048 --iterations 8 --check sample
eigenvalues --size 8k --check sample
gaussian --width 4096 --height 4096 --iterations 8 --check sample
histogram --width 8192 --height 8192 --iterations 4 --check sample
lavamd --boxes 16 --particles 64 --check sample
mm2 --rows 2048 --inner 2048 --columns 2048 --check sample
montecarlo --size 2k --paths 16k --iterations 16 --check sample
needle --length 8192
nn --side 128 --channels 32 --layers 4 --batch 32 --check sample
srad_v1 --rows 2048 --columns 2048 --iterations 50 --check sample
srad_v2 --rows 2048 --columns 2048 --iterations 10 --check sample
transpose --rows 8192 --columns 8192 --iterations 64 --check sample
vecadd --size 16m --check sample
LIST
}
# The median of the numbers on standard input, one a line; of an even number of them the lower one of the middle.
median() { sort -n | awk '{ t[NR] = $1 } END { printf "%.5f", t[int((NR + 1) / 2)] }'; }

# start_heddled [TOML of the [[gpu]] table] [TOML of [daemon]]: a heddled of the stage's own; it ends with the stage.
# SERVICE=1: for every user, as the system's service is.
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
${HEDDLE_GPU:+index = $HEDDLE_GPU}
${1:-}
TOML
  trap stop_heddled EXIT
  if [ "${SERVICE:-}" ]; then
    chmod 755 "$directory"
    "$bin/heddle-vault" --system --config "$directory/heddle.toml" > "$logs/vault.log" 2>&1 < /dev/null &
  elif ! "$bin/heddle" daemon start --config "$directory/heddle.toml" ${POLICY:+--policy "$POLICY"}; then
    echo 'heddled does not start:'; tail -n 30 "$logs/heddled.log"
    return 1
  fi
  # Its first worker says which addresses the GPU leaves to programs.
  wait_for_warm && return 0
  echo 'no worker is warm after 20 s:'; tail -n 30 "$logs/heddled.log"
  return 1
}
# Until a worker stands ready; 1: none does within 20 s.
wait_for_warm() {
  for _ in $(seq 1 200); do
    warm=$("$bin/heddle" devices --json 2>/dev/null | tr ',{}' '\n' | sed -n 's/.*"warm_workers": *\([0-9]*\).*/\1/p' | head -1)
    [ "${warm:-0}" -gt 0 ] && return 0
    sleep 0.1
  done
  return 1
}
heddled_process() { pgrep -f "heddled.*$directory" | tail -n 1; }
# Returns when everything of it has ended, so that the next one finds its memory.
stop_heddled() {
  [ -n "${directory:-}" ] || return 0
  "$bin/heddle" daemon stop > /dev/null 2>&1
  for _ in $(seq 100); do pgrep -f "$directory" > /dev/null || break; sleep 0.1; done
  rm -rf "$directory"
  directory=
}
