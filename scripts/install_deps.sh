#!/usr/bin/env bash
# Installs what hydrant is built from: Debian packages only. A second run finds them all and returns at once.
# --ci adds what the checks need (clang 14 with its runtime, clang-format), --pip what fetching a model needs.
set -euo pipefail

packages=(g++ cmake ninja-build pkg-config libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev
          libpcre2-dev libutf8proc-dev libboost1.81-dev liburing-dev catch2 python3 python3-numpy)
if [[ "${1:-}" == "--ci" ]]; then
  packages+=(clang-14 libclang-rt-14-dev clang-format-14 git)
elif [[ "${1:-}" == "--pip" ]]; then
  packages+=(python3-pip ca-certificates)
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ "$status" == installed ]] || missing+=("$package")
done
if (( ${#missing[@]} == 0 )); then
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
