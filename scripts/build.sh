#!/usr/bin/env bash
# Configures and builds into a folder: build.sh FOLDER TARGET... [-- CMAKE_OPTION...]
# Sets HYDRANT_BUILD_JOBS processes to work, by default one for each core this process may use.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$1
shift
targets=()
while (( $# )) && [[ "$1" != "--" ]]; do targets+=("$1"); shift; done
[[ "${1:-}" == "--" ]] && shift

log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! cmake -S . -B "$folder" -G Ninja "$@" >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
cmake --build "$folder" -j "${HYDRANT_BUILD_JOBS:-$(nproc)}" --target "${targets[@]}"
