"""The compiled tree is built when a source has changed, and only then."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import compiled_tree as module
from tools.compiled_tree import STAMP, CannotCompile, compiled_tree, sources_digest

PROJECT = '[tool.hatch.build.targets.wheel]\npackages = ["core/p"]\n'


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sources of a project."""
    monkeypatch.delenv("PILOTLIGHT_PURE", raising=False)
    monkeypatch.setenv("CC", "sh")
    for name, text in {
        "pyproject.toml": PROJECT, "tools/build_hook.py": "", "tools/cold_paths.h": "",
        "tools/compiled_modules.py": "", "core/p/a.py": "A = 1\n",
        "other/b.py": "",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The digests for which it was built."""
    digests: list[str] = []

    def build(tree: Path, _root: Path, digest: str) -> None:
        digests.append(digest)
        tree.mkdir(exist_ok=True)
        (tree / STAMP).write_text(digest)

    monkeypatch.setattr(module, "_build", build)
    return digests


def test_it_is_built_once_for_each_state_of_the_sources(root: Path, builds: list[str]) -> None:
    """What no wheel carries, and what Python caches, makes no difference."""
    tree = root / "build" / "compiled"

    assert compiled_tree(tree, root) == tree
    (root / "core/p/__pycache__").mkdir()
    (root / "core/p/__pycache__/a.pyc").write_text("")
    (root / "other/b.py").write_text("B = 2\n")
    compiled_tree(tree, root)
    assert len(builds) == 1

    (root / "core/p/a.py").write_text("A = 2\n")
    compiled_tree(tree, root)
    assert builds[1:] == [sources_digest(root)]


@pytest.mark.parametrize("changed", ["core/p/new.py", "tools/build_hook.py", "tools/cold_paths.h", "pyproject.toml"])
def test_a_digest_knows_new_files_and_how_the_tree_is_built(root: Path, changed: str) -> None:
    """A tree of other rooms would be another one."""
    before = sources_digest(root)

    with (root / changed).open("a") as file:
        file.write("\n# more\n")

    assert sources_digest(root) != before


def test_without_a_compiler_there_is_none(root: Path, builds: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so, instead of giving a plain tree for a compiled one."""
    monkeypatch.setenv("CC", "no-such-compiler")

    with pytest.raises(CannotCompile, match="no compiled tree: there is no C compiler"):
        compiled_tree(root / "build", root)
    assert builds == []
