# A step of programs that have run for a while (steady.cu, each bound by one thing): natively and under heddle, alone
# and AT_ONCE (6; 0: alone only) at once, natively in time slices and under a plain MPS. CONFIGS= of heddle as MPS:LEVEL
# ("$HEDDLE_MPS:auto"), CASES=, SECONDS_EACH= (0.4).
. "$(dirname "$0")/common.sh"
steady=$HEDDLE_BUILD/tests/gpu/steady_static
at_once=${AT_ONCE-6}
cases=${CASES:-empty launch wait-1 wait-10 wait-100 wait-1000 update-10 update-100 event-10 host-100 host-1000 read queue}
rounds=$("$steady" --calibrate) || exit 1
echo "$rounds rounds a microsecond; microseconds a step, in brackets over native"
failed=0
began=$(date +%s)
# among NAME N COMMAND...: N at once; "CASE MICROSECONDS" lines to $logs/NAME, medians over the N
among() {
  local name=$1 n=$2 processes=()
  shift 2
  rm -f "$logs/$name".*
  for i in $(seq "$n"); do
    # shellcheck disable=SC2086
    timeout 60 "$@" "$steady" --rounds "$rounds" --seconds "${SECONDS_EACH:-0.4}" $cases > "$logs/$name.$i" 2>&1 < /dev/null &
    processes+=($!)
  done
  wait "${processes[@]}"
  echo "$name: $(($(date +%s) - began)) s"
  if [ "$(cat "$logs/$name".* | grep -c 'steady: PASS')" -ne "$n" ]; then
    echo "$name failed:"; tail -n 5 "$logs/$name".*
    failed=1
  fi
  for each in $cases; do
    echo "$each $(cat "$logs/$name".* | awk -v c="$each" '$1 == c { print $2 }' | median)"
  done > "$logs/$name"
}
table() { # table BASE NAME...: a row a case, a column a name, over BASE
  printf '%-12s' case; printf ' %18s' "$@"; echo
  for each in $cases; do
    printf '%-12s' "$each"
    for name in "$@"; do
      awk -v c="$each" -v b="$(awk -v c="$each" '$1 == c { print $2 }' "$logs/$1")" \
        '$1 == c { printf " %9.2f (%5.3f) ", $2, (b > 0 ? $2 / b : 0) }' "$logs/$name"
    done
    echo
  done
}
plain_mps() { # plain_mps COMMAND...: under a control daemon of its own
  local control pipes
  control=$(command -v nvidia-cuda-mps-control || ls /usr/local/nvidia/bin/nvidia-cuda-mps-control 2>/dev/null) || return 1
  pipes=$(mktemp -d /tmp/mps-XXXXXX)
  CUDA_MPS_PIPE_DIRECTORY=$pipes CUDA_MPS_LOG_DIRECTORY=$pipes "$control" -f > "$logs/plain-mps.log" 2>&1 &
  local daemon=$!
  sleep 1
  CUDA_MPS_PIPE_DIRECTORY=$pipes "$@"
  echo quit | CUDA_MPS_PIPE_DIRECTORY=$pipes "$control" > /dev/null 2>&1
  kill "$daemon" 2> /dev/null
  wait "$daemon" 2> /dev/null
  rm -rf "$pipes"
}
among native 1 env
alone=(native) crowd=(native-six mps-six)
if [ "$at_once" -gt 0 ]; then
  among native-six "$at_once" env
  plain_mps among mps-six "$at_once" env
fi
for config in ${CONFIGS:-$HEDDLE_MPS:auto}; do
  HEDDLE_MPS=${config%:*}
  start_heddled "[durability]
level = \"${config#*:}\"" || exit 1
  sleep 2  # workers of both kinds stand ready
  among "$config" 1 "$bin/heddle" run --
  alone+=("$config")
  if [ "$at_once" -gt 0 ]; then
    among "$config-six" "$at_once" "$bin/heddle" run --
    crowd+=("$config-six")
  fi
  stop_heddled
done
echo; echo 'alone'; table "${alone[@]}"
[ "$at_once" -gt 0 ] && { echo; echo "$at_once at once"; table "${crowd[@]}"; }
exit $failed
