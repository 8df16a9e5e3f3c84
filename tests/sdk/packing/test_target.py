"""The argument of a deploy: a file, a folder or a module."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight.definitions.errors import BadInput
from pilotlight.packing import find_target


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("flat/app.py", "flat/other.py", "shop/__init__.py", "shop/models/__init__.py", "shop/models/app.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "flat/my-app.py").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("text", "module", "root", "folder", "function"),
    [
        ("flat/app.py", "app", "flat", "flat", None),
        ("flat/other.py::greet", "other", "flat", "flat", "greet"),
        ("flat", "app", "flat", "flat", None),
        ("flat.app", "app", "flat", "flat", None),
        ("shop/models/app.py", "shop.models.app", ".", "shop", None),
        ("shop.models.app::Model", "shop.models.app", ".", "shop", "Model"),
        ("shop/models", "shop.models.app", ".", "shop", None),
        ("shop", "shop", ".", "shop", None),
    ],
)
def test_a_target_is_a_module_and_its_folder(
    tree: Path, text: str, module: str, root: str, folder: str, function: str | None
) -> None:
    """A package is packed as a whole, and a single module with its folder."""
    target = find_target(text, within=tree)
    assert (target.module, target.function) == (module, function)
    assert (target.root, target.folder) == ((tree / root).resolve(), (tree / folder).resolve())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("missing.py", "There is no file"),
        ("no.such.module", "no file or module"),
        ("empty", "without an app.py"),
        ("notes.txt", "not a Python file"),
        ("flat/my-app.py", "no Python name"),
        ("flat/app.py::", "expected the name of a function"),
        ("builtins", "no file or module"),
    ],
)
def test_a_malformed_target_is_refused(tree: Path, text: str, message: str) -> None:
    """The error names what was looked for."""
    with pytest.raises(BadInput, match=message):
        find_target(text, within=tree)


def test_an_installed_module_is_found(tree: Path) -> None:
    """It is found by its name."""
    assert find_target("pathspec", within=tree).module == "pathspec"
