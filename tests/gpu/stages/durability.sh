# What the durability levels cost on the GPU (bench/durability.py). REPETITIONS= (default 2), WORKLOADS=, LEVELS=off,auto
. "$(dirname "$0")/common.sh"
python3 "$(dirname "$0")/../../../bench/durability.py" "$HEDDLE_BUILD" --gpu --mps "$HEDDLE_MPS" --minutes 7 \
  --repetitions "${REPETITIONS:-2}" ${WORKLOADS:+--workloads "$WORKLOADS"} ${LEVELS:+--levels "$LEVELS"}
