#!/usr/bin/env bash
# Proves the CUDA backend on a machine with a card, without network: builds for the card found, runs all tests on it,
# compares it with the CPU on a model, and measures. Leaves gpu_check.json and gpu_check.md in the folder given.
#
#   scripts/gpu_check.sh [--model PATH] [--shape NAME] [--output FOLDER] [--device N] [--full]
#
# Without --model weights are synthetic, of the shape given (llama-2-7b), or of one that fits the card; what is compared with
# the CPU is then the demo's model, if scripts/fetch_model.sh has been here. --full builds and runs all tests, and grids of
# batches and budgets that take an hour, the H2O paper's tables 3, 5 and 7 among them. First it says what is missing.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
here=$PWD

model="" shape="" output=$root/build/gpu_check device=0 full=0
while (( $# )); do
  case $1 in
    --model) model=$(cd "$here" && realpath "$2"); shift ;;
    --shape) shape=$2; shift ;;
    --output) output=$(cd "$here" && realpath -m "$2"); shift ;;
    --device) device=$2; shift ;;
    --full) full=1 ;;
    *) echo "gpu_check.sh: unknown '$1'" >&2; exit 2 ;;
  esac
  shift
done
cd "$root"
export PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin

missing=()
need() { command -v "$1" >/dev/null || missing+=("$1 ($2)"); }
need cmake "build"; need ninja "build"; need g++ "build"; need python3 "reports"
need nvcc "CUDA toolkit 12 or 13"; need nvidia-smi "NVIDIA's driver"
version=$(cmake --version 2>/dev/null | sed -n '1s/.* //p')
[[ -z $version || $(printf '%s\n' 3.25 "$version" | sort -V | head -n 1) == 3.25 ]] || missing+=("cmake 3.25 or later (here $version)")
for header in fmt/format.h spdlog/spdlog.h nlohmann/json.hpp CLI/CLI.hpp catch2/catch.hpp pcre2.h utf8proc.h liburing.h \
              boost/asio.hpp; do
  [[ -e /usr/include/$header || -e /usr/include/x86_64-linux-gnu/$header ]] || missing+=("$header (scripts/install_deps.sh)")
done
[[ ! -e /usr/include/catch2/catch_all.hpp ]] || missing+=("Catch2 2 (here is Catch2 3, which has other headers)")
{ compgen -G "${CUDA_HOME:-/usr/local/cuda}/lib64/libcublas.so.*" || compgen -G "/usr/local/cuda/lib64/libcublas.so.*" ||
  /sbin/ldconfig -p | grep libcublas.so; } >/dev/null || missing+=("libcublas.so (cuBLAS of the CUDA toolkit)")
if (( ${#missing[@]} )); then
  printf 'gpu_check.sh: missing: %s\n' "${missing[@]}" >&2
  exit 2
fi
if ! card=$(nvidia-smi -i "$device" --query-gpu=name,compute_cap,memory.total,driver_version --format=csv,noheader,nounits 2>&1); then
  echo "gpu_check.sh: no card answers: $card" >&2
  exit 2
fi
IFS=, read -r name capability memory driver < <(sed 's/, */,/g' <<<"$card")
echo "card $device: $name, compute capability $capability, $memory MiB, driver $driver"

build=build/gpu
mkdir -p "$output"
rm -f "$output"/{parts.jsonl,parity.json,profile.json,trace.json,gpu_check.json,gpu_check.md} "$output"/bench_*.json
failed=()
part() {  # NAME COMMAND...: its output to NAME.log; what fails is told at the end, and the rest goes on
  local part=$1 start=$SECONDS
  shift
  echo "=== $part"
  "$@" >"$output/$part.log" 2>&1 || { failed+=("$part"); tail -n 15 "$output/$part.log"; }
  echo "=== $part: $((SECONDS - start)) s"
  echo "{\"part\": \"$part\", \"seconds\": $((SECONDS - start))}" >>"$output/parts.jsonl"
}

export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=$device  # as nvidia-smi counts them
hydrant=$build/runtime/apps/hydrant
targets=(hydrant card_tests)
rm -f $hydrant  # what was built before is not what is checked
limit=300       # seconds that a test or benchmark may take: a card that waits for itself says nothing
(( full )) && limit=7200
(( full )) && targets+=(all)
part build scripts/build.sh $build "${targets[@]}" -- -DCMAKE_BUILD_TYPE=Release "-DHYDRANT_CUDA_ARCHITECTURES=${capability/./}"
if [[ ! -x $hydrant ]]; then
  echo "gpu_check.sh: not built; see $output/build.log" >&2
  exit 1
fi
$hydrant inspect --devices
part kernels python3 scripts/kernel_registers.py --build $build

# What runs on the emulated card runs on this one: operations, whole runs, offloading, faults.
while read -r test filter; do
  part "${test#test_card_}" timeout "$limit" "$build/test/cuda/$test" "$filter"
done <$build/test/cuda/card_tests.txt
# Memory always; with --full also races in shared memory and barriers that not all threads come to.
if command -v compute-sanitizer >/dev/null; then
  tools=(memcheck) limit=180
  (( full )) && tools+=(racecheck synccheck) limit=1800
  for tool in "${tools[@]}"; do
    part "$tool" timeout "$limit" compute-sanitizer --tool "$tool" --error-exitcode 9 $build/test/cuda/test_card_ops \
      "[devices]~\"*every shape*\"~\"*several key blocks*\""
  done
fi
(( full )) && part tests ctest --test-dir $build --output-on-failure -j "$(nproc)"

demo=build/models/SmolLM2-135M-Instruct.Q4_1.gguf
compared=$model
[[ -z $model && -f $demo ]] && compared=$demo
if [[ -n $compared ]]; then
  part parity timeout "$limit" python3 scripts/gpu_parity.py --hydrant $hydrant --model "$compared" --output "$output/parity.json"
else
  echo "=== parity: left out: no --model, and none in build/models (scripts/fetch_model.sh)"
fi
if [[ -n $model ]]; then
  weights=(--model "$model")
else
  if [[ -z $shape ]]; then
    shape=opt-1.3b
    (( memory > 20000 )) && shape=llama-2-7b
  fi
  weights=(--synthetic "$shape")
fi

batches=1,8,32,64 budgets=20% lengths=512
(( full )) && batches=1,2,4,8,16,32,64 budgets=10%,20%,40% lengths=512,1024,2048
bench() {  # NAME FLAG...
  local to=$output/bench_$1.json
  shift
  timeout "$limit" $hydrant bench --device cuda "${weights[@]}" --json "$to" --repeats 2 "$@"
}
part profile timeout "$limit" $hydrant profile --device cuda --output "$output/profile.json" --folder "$output"
part resident bench resident --prompt-len $lengths --output-len 32 --batch $batches --policy full,h2o --budget $budgets
# Kernels of quantised weights are others for 1, some and many tokens.
if [[ -z $model ]]; then
  part quantised bench quantised --synthetic-format q4_0 --prompt-len 512 --output-len 32 --batch 1,16,64 --policy full
fi
part weights_on_host bench weights_on_host --prompt-len 512 --output-len 8 --batch 32 --policy h2o --budget 20% \
  --placement 0,100,100,0,100,0 --trace "$output/trace.json"
part cache_on_host bench cache_on_host --prompt-len 512 --output-len 8 --batch 32 --policy full,h2o --budget 20% \
  --placement 100,0,0,100,100,0
if (( full )); then
  part tables python3 scripts/sweep.py --hydrant $hydrant "${weights[@]}" --tables 3,5,7 --output "$output/sweep" -- --device cuda
fi

python3 scripts/gpu_report.py --folder "$output" --card "$name" --capability "$capability" --memory "$memory" \
  --driver "$driver" --failed "${failed[*]:-}"
echo "gpu_check.sh: $SECONDS s; $output/gpu_check.md, $output/gpu_check.json"
(( ${#failed[@]} == 0 ))
