#!/usr/bin/env bash
# Make sure of the system packages: bubblewrap, the sandbox (required), PostgreSQL (the tests of the ledger), and wrk, the
# load generator (benchmarks only).
# Installs them where that needs no question, as root on Debian or Ubuntu; elsewhere it stops with the command to run.
set -euo pipefail

if [[ $(uname -s) != Linux ]]; then
    echo "error: the platform runs on Linux; on this machine the SDK and the CLI do: pip install pilotlight" >&2
    exit 1
fi

# Debian has its programs in a folder of each release, which is not on PATH.
has_postgresql() {
    command -v initdb > /dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' > /dev/null
}

missing=()
command -v bwrap > /dev/null || missing+=(bubblewrap)
has_postgresql || missing+=(postgresql)
command -v wrk > /dev/null || missing+=(wrk)
[[ ${#missing[@]} -gt 0 ]] || exit 0

if command -v apt-get > /dev/null && [[ $(id -u) -eq 0 ]]; then
    echo "installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq || echo "note: the package lists could not be brought up to date" >&2
    for package in "${missing[@]}"; do # one by one: bubblewrap must not fail because wrk does
        apt-get install -y -qq --no-install-recommends "$package" > /dev/null || true
    done
fi

has_postgresql || echo "note: postgresql is missing; only the tests of the ledger need it" >&2
command -v wrk > /dev/null || echo "note: wrk is missing; only the benchmarks need it" >&2
command -v bwrap > /dev/null && exit 0

for install in "apt-get install -y" "dnf install -y" "zypper install -y" "pacman -S --noconfirm" "apk add"; do
    if command -v "${install%% *}" > /dev/null; then
        echo "error: bubblewrap is missing. Run this, then the same make command again:" >&2
        echo "    sudo $install bubblewrap wrk" >&2
        exit 1
    fi
done
echo "error: bubblewrap is missing. Install it with this system's package manager, then run make again." >&2
exit 1
