"""The product as its wheel ships it, in build/compiled: `python -m tools.compiled_tree` builds it, once for each tree.

`PYTHONPATH=build/compiled` in front of an editable install runs it; nothing else reads it, so that no compiled module
ever hides an edited source. Guests ignore PYTHONPATH: they run the plain files.
"""

# ruff: noqa: T201 - it is a command; printing is what it does

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tools.compiled_modules import why_pure

ROOT = Path(__file__).resolve().parents[1]
TREE = ROOT / "build" / "compiled"
STAMP = "SOURCES"
"""The file in the tree that holds the digest of what it was built from."""
BUILDERS = ("mypy", "setuptools", "hatchling")
THE_BUILD = ("pyproject.toml", "tools/build_hook.py", "tools/cold_paths.h", "tools/compiled_modules.py")


class CannotCompile(Exception):
    """There is nothing to compile with, or the build failed; the message says why."""


def compiled_tree(tree: Path = TREE, root: Path = ROOT) -> Path:
    """`tree`, built from the sources at `root` unless it is there already; says on stderr what it does.

    Raises:
        CannotCompile: naming the reason.
    """
    if why := why_pure(os.environ, "standard"):
        raise CannotCompile(f"no compiled tree: {why}")
    digest = sources_digest(root)
    tree.parent.mkdir(parents=True, exist_ok=True)
    with (tree.parent / f"{tree.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two benchmarks at once would build into one folder
        if not is_built(tree, digest):
            print(f"building {tree}; the first time takes some minutes of each processor", file=sys.stderr)
            _build(tree, root, digest)
    return tree


def is_built(tree: Path, digest: str) -> bool:
    """Whether the tree was built from what has this digest."""
    stamp = tree / STAMP
    return stamp.is_file() and stamp.read_text() == digest


def sources_digest(root: Path) -> str:
    """What a compiled tree depends on: each file of the packages, how they are built, and by which versions."""
    digest = hashlib.sha256(sys.version.encode())
    for name in BUILDERS:
        digest.update(f"{name} {importlib.metadata.version(name)}\n".encode())
    for path in _sources(root):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root)} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _sources(root: Path) -> Iterator[Path]:
    yield from (root / name for name in THE_BUILD)
    packages = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    for package in packages["packages"]:
        files = (path for path in (root / package).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        yield from sorted(files)


def _build(tree: Path, root: Path, digest: str) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    hatchling = [sys.executable, "-m", "hatchling"]
    with tempfile.TemporaryDirectory(dir=tree.parent) as folder:
        _run([*hatchling, "build", "--target", "wheel", "--directory", folder], root)
        (wheel,) = Path(folder).glob("*.whl")
        made = Path(folder, "tree")
        _run([*pip, "install", "--no-deps", "--target", str(made), str(wheel)], root)
        (made / STAMP).write_text(digest)
        shutil.rmtree(tree, ignore_errors=True)
        made.rename(tree)


def _run(command: list[str], root: Path) -> None:
    if subprocess.run(command, stdout=sys.stderr, cwd=root, check=False).returncode:
        raise CannotCompile("the compiled wheel could not be built; what is wrong stands above")


def main() -> int:
    """Build it, and print its path."""
    try:
        print(compiled_tree())
    except CannotCompile as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
