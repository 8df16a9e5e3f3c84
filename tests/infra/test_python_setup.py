"""Which interpreter `make setup` takes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "infra/setup/python_packages.sh"
VERSION = "python{}.{}".format(*sys.version_info[:2])
STUB = """#!/bin/bash
case $1 in
    -c) exec {python} "$@" ;;
    -) exit {is_plain} ;;
    -m) exit 9 ;;
esac
echo "{name}"
"""


def stub(folder: Path, name: str, *, is_plain: bool) -> None:
    """An interpreter that is this one, says that it is optimised or not, and makes no environment."""
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(STUB.format(python=sys.executable, is_plain=int(is_plain), name=f"{folder.name}/{name}"))
    file.chmod(0o755)


@pytest.mark.parametrize(
    ("first_is_plain", "other_is_plain", "named", "taken"),
    [
        (True, False, "", f"fast/{VERSION}"),
        (False, False, "", "first/python3"),
        (True, True, "", "first/python3"),
        (True, False, "python3", "first/python3"),
    ],
)
def test_an_optimised_interpreter_of_the_same_version_is_taken(
    tmp_path: Path, first_is_plain: bool, other_is_plain: bool, named: str, taken: str
) -> None:
    """Unless one is named; and where there is none, the first on PATH."""
    stub(tmp_path / "first", "python3", is_plain=first_is_plain)
    stub(tmp_path / "first", VERSION, is_plain=first_is_plain)
    stub(tmp_path / "fast", VERSION, is_plain=other_is_plain)
    stub(tmp_path / "fast", "python3.99", is_plain=False)
    bash = shutil.which("bash")
    assert bash is not None
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/bash").symlink_to(bash)
    env = {"PATH": ":".join(str(tmp_path / name) for name in ("first", "fast", "tools"))}
    if named:
        env["PYTHON"] = named

    done = subprocess.run([SCRIPT, tmp_path / "venv"], env=env, capture_output=True, text=True, check=False)

    assert done.returncode == 9
    assert f"creating {tmp_path}/venv with {taken}, {tmp_path / taken} " in done.stdout
