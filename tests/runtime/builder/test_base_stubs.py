"""A resolver finds the packages of a base environment as they are."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from pilotlight_runtime.builder.base_stubs import BasePackage, constraints_of, installed_packages, write_stubs


def test_packages_of_an_interpreter_are_listed_with_their_metadata() -> None:
    """Each once, by name."""
    found = installed_packages(sys.executable)

    names = [each.name for each in found]
    assert names == sorted(set(names))
    (own,) = [each for each in found if each.name == "msgspec"]
    assert f"Version: {own.version}" in own.metadata
    assert f"msgspec=={own.version}\n" in constraints_of(found)


def test_each_is_a_wheel_without_contents(tmp_path: Path) -> None:
    """Under the name by which a resolver looks for it, with the version of a build of one's own."""
    write_stubs([BasePackage("my-lib.core", "1.0+cpu", "Name: my-lib.core\nVersion: 1.0+cpu\n")], tmp_path / "stubs")

    (path,) = (tmp_path / "stubs").iterdir()
    assert path.name == "my_lib_core-1.0+cpu-py3-none-any.whl"
    with zipfile.ZipFile(path) as wheel:
        assert {name.partition("/")[2] for name in wheel.namelist()} == {"METADATA", "WHEEL", "RECORD"}
        assert wheel.read("my_lib_core-1.0+cpu.dist-info/METADATA").startswith(b"Name: my-lib.core")


def test_an_interpreter_that_cannot_list_them_says_why() -> None:
    """The job ends with its words."""
    with pytest.raises(ValueError, match="cannot be listed"):
        installed_packages("/bin/false")
