"""What packages an environment has, with their licences: of a base by its interpreter, of what is built by its files.

What stands in the metadata of a package is its author's word: it is read within bounds, and believed as such.
"""

from __future__ import annotations

import functools
import hashlib
import subprocess
from collections.abc import Iterator
from email.parser import HeaderParser
from pathlib import Path

import msgspec

from pilotlight_core.model.supply.inventories import MOST_DESCRIBED, BaseInventory, PackageFact
from pilotlight_core.model.supply.licences import LICENCE_LENGTH, spdx_of
from pilotlight_runtime.environments.base_facts import FACTS_S, NoFacts

METADATA_BYTES = 64 * 1024
"""Of one package; what it says of its licence stands before its description."""
CODE = """
import json, sys, sysconfig
print("\\n" + json.dumps({
    "folders": [each for each in sys.path if each],
    "python": f"cp{sys.version_info[0]}{sys.version_info[1]}",
    "platform": sysconfig.get_platform().replace("-", "_").replace(".", "_").lower(),
}))
"""
OWN = "pilotlight"


class _Says(msgspec.Struct, frozen=True, kw_only=True):
    folders: tuple[str, ...]
    python: str
    platform: str


@functools.cache
def base_inventory(python: Path) -> BaseInventory:
    """What there is of packages where an interpreter looks for them, asked once; blocks.

    Its digest is that of `base_facts`. The files are read here: to have the interpreter list them takes ten times as
    long.

    Raises:
        NoFacts: it does not run.
    """
    try:
        done = subprocess.run(
            [str(python), "-I", "-B", "-c", CODE], capture_output=True, text=True, timeout=FACTS_S, check=False, cwd="/"
        )
        if done.returncode:
            raise NoFacts(f"{python} does not say what it has: {done.stderr.strip()[-400:]}")
        says = msgspec.json.decode(done.stdout.strip().rpartition("\n")[2], type=_Says)
    except (OSError, subprocess.SubprocessError, msgspec.DecodeError) as error:
        raise NoFacts(f"{python} does not say what it has: {error}") from None
    packages = [each for folder in says.folders for each in facts_below(Path(folder)) if each.name != OWN]
    named = sorted({f"{each.name}=={each.version}" for each in packages})
    return BaseInventory(
        digest=hashlib.sha256("\n".join(named).encode()).hexdigest(),
        python=says.python,
        platform=says.platform,
        packages=tuple(packages[:MOST_DESCRIBED]),
    )


def facts_below(folder: Path) -> tuple[PackageFact, ...]:
    """The packages that are installed in a folder, by name; blocks. What has no readable metadata is left out."""
    found = sorted(_facts(folder), key=lambda each: (each.name, each.version))
    return tuple(found[:MOST_DESCRIBED])


def _facts(folder: Path) -> Iterator[PackageFact]:
    for each in folder.glob("*.dist-info/METADATA"):
        try:
            with each.open("rb") as file:
                text = file.read(METADATA_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
        said = HeaderParser().parsestr(text.partition("\n\n")[0])
        name, version = said.get("Name"), said.get("Version")
        if name and version:
            yield _fact(
                str(name), str(version), str(said.get("License-Expression") or ""), str(said.get("License") or ""),
                [str(one) for one in said.get_all("Classifier") or []],
            )  # fmt: skip


def _fact(name: str, version: str, expression: str, text: str, classifiers: list[str]) -> PackageFact:
    licence = spdx_of(expression[:LICENCE_LENGTH], text[:LICENCE_LENGTH], classifiers[:200])[:LICENCE_LENGTH]
    return PackageFact(name=name[:128], version=version[:64], licence=licence)
