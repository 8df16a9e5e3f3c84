"""The image is built from every package of the wheel, and from what builds the wheel."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
INFRA = ROOT / "infra"


def wheel_folders() -> set[str]:
    """The top folders of the wheel's packages."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return {package.split("/")[0] for package in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]}


def test_the_image_copies_every_package() -> None:
    """Without one of them, or without the build's hook in tools/, the installation in the image fails."""
    copied = re.findall(r"^COPY (\w+) \1$", (INFRA / "Dockerfile").read_text(), re.MULTILINE)
    assert wheel_folders() | {"tools"} == set(copied)


def test_what_is_copied_is_not_ignored() -> None:
    """A folder that the ignore file leaves out is missing when the image is built."""
    taken = re.findall(r"^!(\w+)$", (INFRA / "Dockerfile.dockerignore").read_text(), re.MULTILINE)
    assert wheel_folders() | {"tools"} <= set(taken)


def test_every_package_says_that_it_is_typed() -> None:
    """A checker of the user's code takes the types of packages with a `py.typed` only."""
    untyped = [path for path in ROOT.glob("*/pilotlight*/__init__.py") if not (path.parent / "py.typed").is_file()]
    assert untyped == []
