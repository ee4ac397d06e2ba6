# Every workload, with NVIDIA's runtime as a shared library and linked in, under heddle on the GPU: each checks itself.
. "$(dirname "$0")/common.sh"
start_heddled || exit 1
"$bin/heddle" devices
commands='
backprop --inputs 200k --hidden 16
bfs --nodes 400k --degree 8
blackscholes --size 4m --iterations 64
conv2d --width 1024 --height 1024
dwt2d --width 1024 --height 1024
dwt2d --width 1024 --height 1024 --wavelet 5/3
dxtc --width 512 --height 512 --iterations 16 --check sample
eigenvalues --size 8k --check sample
gaussian --width 800 --height 600 --iterations 64
histogram --width 1024 --height 512 --iterations 64
lavamd --boxes 10 --particles 32 --check sample
mm2 --rows 512 --inner 512 --columns 512 --check sample
montecarlo --size 2k --paths 16k --iterations 16 --check sample
needle --length 2048
nested_pointers --rows 500 --length 1000 --chains 100 --chain-length 50
nn --side 128 --channels 16 --batch 16 --iterations 4 --check sample
nn --mode train --side 64 --channels 16 --batch 16 --check sample
nn --mode detect --side 256 --channels 16 --batch 1 --iterations 16 --check sample
nn --mode generate --hidden 512 --classes 96 --iterations 200 --check sample
srad_v1 --rows 512 --columns 512 --iterations 10
srad_v2 --rows 512 --columns 512 --iterations 10
transpose --rows 800 --columns 800 --iterations 1000
vecadd --size 4m'
passed=0 all=0
while read -r name options; do
  [ -n "$name" ] || continue
  for program in "$name" "${name}_static"; do
    all=$((all + 1))
    log=$logs/$program-$all.log
    begin=$(seconds)
    # shellcheck disable=SC2086
    timeout 60 "$bin/heddle" run -- "$workloads/$program" $options > "$log" 2>&1 < /dev/null
    status=$?
    took=$(awk -v a="$begin" -v b="$(seconds)" 'BEGIN { printf "%.2f", b - a }')
    if [ $status -eq 0 ] && grep -q PASS "$log"; then
      passed=$((passed + 1))
      echo "ok   $took s  $program $options"
    else
      echo "FAIL $took s  $program $options (status $status)"
      tail -n 4 "$log" | sed 's/^/       /'
    fi
  done
done <<< "$commands"
echo "workloads: $passed of $all right"
[ "$passed" -eq "$all" ] || { echo 'heddled:'; grep -iv ' \[info\] ' "$logs/heddled.log" | tail -n 20; exit 1; }
