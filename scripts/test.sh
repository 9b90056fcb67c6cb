#!/usr/bin/env bash
# Installs the packages, builds everything and runs all tests: on a fresh machine this is the only command needed.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_deps.sh
scripts/build.sh build/release all -- -DCMAKE_BUILD_TYPE=Release -DHYDRANT_TESTS=ON "$@"
ctest --no-tests=error --test-dir build/release --output-on-failure -j "$(nproc)"
