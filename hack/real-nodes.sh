#!/usr/bin/env bash
# Makes sure that this machine can run real nodes (kubelet, containerd and runc) and a real Prometheus for tests, and installs what they need with
# apt if that is possible.
# Ends with code 1, and a line on standard output that says why, if it cannot.
set -euo pipefail

packages=(containerd runc containernetworking-plugins iptables conntrack iproute2 busybox-static prometheus)

# missing lists what real nodes do not find, whoever installed the rest.
missing() {
  local program
  for program in containerd runc iptables conntrack ip prometheus; do
    command -v "$program" >/dev/null || echo "$program"
  done
  [[ -x /usr/lib/cni/bridge || -x /opt/cni/bin/bridge ]] || echo "network plugins"
  [[ -x /bin/busybox ]] || echo "busybox-static"
}

if [[ $(uname -s) != Linux ]]; then
  echo "real nodes need Linux, and this is $(uname -s)"
  exit 1
fi
if ((EUID != 0)); then
  echo "real nodes need root: they make network devices and cgroups"
  exit 1
fi
[[ -n $(missing) ]] || exit 0
if ! command -v apt-get >/dev/null; then
  echo "real nodes need $(missing | paste -sd, | sed 's/,/, /g'), and there is no apt-get to install them"
  exit 1
fi
echo "Installing ${packages[*]} for real nodes" >&2
export DEBIAN_FRONTEND=noninteractive
if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${packages[@]}"; } >&2; then
  echo "real nodes need ${packages[*]}, and apt-get cannot install them"
  exit 1
fi
if [[ -n $(missing) ]]; then
  echo "real nodes need $(missing | paste -sd, | sed 's/,/, /g'), which the packages ${packages[*]} did not bring"
  exit 1
fi
