#!/usr/bin/env bash
# Installs what hydrant is built from: Debian packages only. A second run finds them all and returns at once.
# --ci adds what the checks need (clang 14 with its runtime, clang-format), --pip what fetching a model needs, --nvcc a
# compiler for the CUDA backend where there is none: NVIDIA's own packages of PyPI, by hash, into build/cuda (100 MB to fetch).
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(g++ cmake ninja-build pkg-config libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev
          libpcre2-dev libutf8proc-dev libboost1.81-dev liburing-dev catch2 python3 python3-numpy)
if [[ "${1:-}" == "--ci" ]]; then
  packages+=(clang-14 libclang-rt-14-dev clang-format-14 git)
elif [[ "${1:-}" == "--pip" ]]; then
  packages+=(python3-pip ca-certificates)
elif [[ "${1:-}" == "--nvcc" ]]; then
  for nvcc in "$(command -v nvcc || true)" "${CUDA_HOME:-}/bin/nvcc" "${CUDA_PATH:-}/bin/nvcc" /usr/local/cuda/bin/nvcc; do
    [[ ! -x "$nvcc" ]] || exit 0
  done
  packages+=(python3-pip ca-certificates)
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ "$status" == installed ]] || missing+=("$package")
done
install_nvcc() {
  local to=build/cuda
  [[ -e $to/complete ]] && cmp -s scripts/cuda_packages.txt $to/complete && return
  echo "Fetching nvcc into $to" >&2
  rm -rf $to
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --no-cache-dir --no-deps --only-binary :all: \
    --require-hashes --target $to -r scripts/cuda_packages.txt
  ln -s lib $to/nvidia/cu13/lib64  # where nvcc looks
  cp scripts/cuda_packages.txt $to/complete
}

if (( ${#missing[@]} == 0 )); then
  [[ "${1:-}" != "--nvcc" ]] || install_nvcc
  exit 0
fi

if [[ $(id -u) == 0 ]]; then
  sudo=()
elif command -v sudo >/dev/null; then
  sudo=(sudo)
else
  echo "install_deps.sh: these packages are missing and only root can install them: ${missing[*]}" >&2
  exit 2
fi
echo "Installing ${missing[*]}" >&2
# sudo hands no variables on; without apt-utils debconf would warn of each run of apt.
apt=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes apt-get)
"${apt[@]}" update -qq
"${apt[@]}" install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
[[ "${1:-}" != "--nvcc" ]] || install_nvcc
