#!/usr/bin/env bash
# The main job on a real model: installs the packages, builds, fetches SmolLM2-135M-Instruct and lets it write the
# same text with the full cache, with only the most recent tokens and with the heavy hitters (H2O), then measures
# what the smaller caches saved and what they cost. A second run installs, builds and fetches nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

# All packages in one round: without pip the model could not be fetched.
if python3 -m pip --version >/dev/null 2>&1; then scripts/install_deps.sh; else scripts/install_deps.sh --pip; fi
[[ -x build/release/runtime/apps/hydrant ]] || echo "Building hydrant, which takes some minutes the first time" >&2
scripts/build.sh build/release hydrant -- -DCMAKE_BUILD_TYPE=Release -DHYDRANT_TESTS=OFF
model=$(scripts/fetch_model.sh)
hydrant=build/release/runtime/apps/hydrant

prompt="The old lighthouse keeper had one rule: never let the lamp go out. On the night of the great storm,"
write() {
  echo
  echo "== $* =="
  "$hydrant" generate --model "$model" --config configs/runs/demo-cpu.json "$@" --prompt "$prompt"
}
write --policy full
write --policy local --budget 20%
write --policy h2o --budget 20%

echo
echo "== what it saves and what it costs: 384 + 128 tokens, batch 8 =="
"$hydrant" bench --model "$model" --prompt-len 384 --output-len 128 --batch 8 \
  --policy full,local,h2o --budget 20% --repeats 1
