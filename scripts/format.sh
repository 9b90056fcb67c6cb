#!/usr/bin/env bash
# Formats every C++ file with clang-format 14; --check only says which ones differ and fails.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t files < <(find policies runtime offload models test -type f \( -name '*.hpp' -o -name '*.cpp' -o -name '*.inl' -o -name '*.cu' -o -name '*.cuh' \) 2>/dev/null)
if [[ "${1:-}" == "--check" ]]; then
  clang-format-14 --dry-run --Werror "${files[@]}"
else
  clang-format-14 -i "${files[@]}"
fi
