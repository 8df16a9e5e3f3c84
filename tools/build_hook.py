"""The hook by which hatchling builds the wheel: mypyc compiles the listed modules, each lies beside its source.

The C files and objects are kept in build/mypyc, so that a second build compiles what has changed alone. Nothing is
written beside the sources: a compiled module there would hide every later edit.
"""

# ruff: noqa: T201 - what the build says is printed

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # hatchling loads this file by its path

from tools.compiled_modules import check, read_list, why_pure

if TYPE_CHECKING:
    from setuptools import Extension

COMPILER = ("mypy==2.4.1", "setuptools>=80")
"""Pinned: each release of mypyc compiles a little differently, and its errors are found by our tests, not by users."""
OPTIMIZE = "2"
COLD_PATHS = Path(__file__).resolve().with_name("cold_paths.h")
FLAGS = (
    "-fcommon",  # mypyc defines the table of each other library once for each file of C; the linker takes those for one
    # Modules of a package call and read each other directly; what Python looks for is exported all the same.
    "-fvisibility=hidden",
    "-fno-semantic-interposition",
    f"-include{COLD_PATHS}",
)


class CompiledWheel(BuildHookInterface):  # type: ignore[type-arg] # its parameter is internal to hatchling
    """Adds the compiled modules to a wheel, or says why it is built of plain Python."""

    def dependencies(self) -> list[str]:
        """What the build needs: for a compiled wheel all that the modules import, since mypyc reads its types."""
        if why_pure(os.environ, self._version()):
            return []
        core = self.metadata.core
        return [*COMPILER, *core.dependencies, *core.optional_dependencies["server"]]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and name what belongs into the wheel; hatchling calls it before it packs."""
        if self.target_name != "wheel":
            return
        if why := why_pure(os.environ, version):
            print(f"building plain Python: {why}", file=sys.stderr)
            return
        root = Path(self.root)
        if wrong := check(root):
            raise SystemExit("\n".join(["these modules cannot be compiled:", *wrong]))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for built, name in compiled(root, root / "build" / "mypyc"):
            build_data["force_include"][str(built)] = name

    def _version(self) -> str:
        """hatchling does not tell, when it asks for dependencies, whether they are for an editable install."""
        return "standard"


def compiled(root: Path, folder: Path) -> Iterator[tuple[Path, str]]:
    """Compile the modules of the tree at `root`, with `folder` for what lies between.

    Yields each library with its name in the wheel. All modules of a package are one library, in which calls from
    module to module are plain ones of C; a process loads the libraries of the packages that it imports alone.
    """
    import setuptools  # noqa: F401 - before mypyc, which else takes its own distutils
    from mypyc.build import mypycify

    began = time.monotonic()
    files = read_list(root).files(root)
    packages = sorted({"/".join(file.split("/")[:2]) for file in files})
    print(f"mypyc compiles {len(files)} modules to C", file=sys.stderr)
    # What mypyc remembers of modules that it compiled lacks which parts of its runtime they need.
    for remembered in (folder / "cache").glob("*/pilotlight*"):
        shutil.rmtree(remembered) if remembered.is_dir() else remembered.unlink()
    os.chdir(root)  # mypyc takes paths as names of modules, by the folders that pyproject.toml gives mypy
    extensions = mypycify(
        [
            "--config-file=pyproject.toml",
            f"--cache-dir={folder / 'cache'}",
            "--no-sqlite-cache",
            "--no-warn-unused-ignores",
            *files,
        ],
        separate=[
            ([file for file in files if file.startswith(f"{package}/")], package.split("/")[1]) for package in packages
        ],
        multi_file=True,
        opt_level=OPTIMIZE,
        debug_level="0",
        target_dir=str(folder / "c"),
    )
    print(f"the C compiler makes libraries of them, after {time.monotonic() - began:.0f} s", file=sys.stderr)
    yield from _libraries(extensions, folder)
    print(f"compiled in {time.monotonic() - began:.0f} s", file=sys.stderr)


def _libraries(extensions: list[Extension], folder: Path) -> Iterator[tuple[Path, str]]:
    """Compile and link; what is older than its source or a header of it is made again, on all processors."""
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    class Libraries(build_ext):  # type: ignore[misc] # setuptools has no types
        def build_extensions(self) -> None:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                # By source, since libraries have the compiler's own in common.
                by_source = {source: one for one in extensions for source in one.sources}
                objects = {source: pool.submit(self._object, one, source) for source, one in by_source.items()}
                for one in extensions:
                    made = [objects[source].result() for source in one.sources]
                    self.compiler.link_shared_object(made, self.get_ext_fullpath(one.name))

        def _object(self, extension: Extension, source: str) -> str:
            (made,) = self.compiler.object_filenames([source], output_dir=self.build_temp)
            if not _is_newer(Path(made), [source, *extension.depends, __file__, str(COLD_PATHS)]):
                self.compiler.compile(
                    [source], output_dir=self.build_temp, include_dirs=extension.include_dirs,
                    extra_postargs=[*extension.extra_compile_args, *FLAGS],
                )  # fmt: skip
            return str(made)

    command = Libraries(Distribution({"name": "pilotlight", "ext_modules": extensions}))
    command.build_lib, command.build_temp = str(folder / "lib"), str(folder / "objects")
    command.ensure_finalized()
    command.run()
    for one in extensions:
        yield Path(command.get_ext_fullpath(one.name)), command.get_ext_filename(one.name)


def _is_newer(made: Path, sources: list[str]) -> bool:
    return made.is_file() and all(made.stat().st_mtime > Path(source).stat().st_mtime for source in sources)
