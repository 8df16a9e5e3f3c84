"""Wheels without contents of what a base environment has, so that a resolver takes its packages as they are.

Held to the base's versions by name alone, it would have to find each of them on the index: one may have been built by
the operator, another come from elsewhere (`torch==2.13.0+cpu`). A wheel with the metadata of the installed package is
all that it reads, and none of these is ever installed.
"""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

import msgspec

LIST = """
import importlib.metadata, json
found = {}
for each in importlib.metadata.distributions():
    text = each.read_text("METADATA")
    if text and each.metadata["Name"] and each.version:
        found.setdefault(each.metadata["Name"], (each.version, text))
print("\\n" + json.dumps(found))
"""
LIST_S = 60.0


class BasePackage(msgspec.Struct, frozen=True):
    """One that a base environment has, and its metadata."""

    name: str
    version: str
    metadata: str


def installed_packages(python: str) -> list[BasePackage]:
    """The packages of an interpreter's environment, by name. Raises OSError and ValueError."""
    done = subprocess.run(
        [python, "-I", "-B", "-c", LIST], capture_output=True, text=True, timeout=LIST_S, check=False, cwd="/"
    )
    if done.returncode:
        raise ValueError(f"the packages of the base environment cannot be listed: {done.stderr.strip()[-400:]}")
    found = json.loads(done.stdout.strip().rpartition("\n")[2])
    return [BasePackage(name, version, text) for name, (version, text) in sorted(found.items())]


def constraints_of(packages: list[BasePackage]) -> str:
    """The lines that hold a resolver to the base's versions."""
    return "".join(f"{each.name}=={each.version}\n" for each in packages)


def write_stubs(packages: list[BasePackage], folder: Path) -> None:
    """Write a wheel for each package."""
    folder.mkdir()
    for each in packages:
        stem = f"{each.name.replace('-', '_').replace('.', '_')}-{each.version.replace('-', '_')}"
        with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
            inside = f"{stem}.dist-info"
            wheel.writestr(f"{inside}/METADATA", each.metadata)
            wheel.writestr(f"{inside}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{inside}/RECORD", "")
