"""Finds the files to pack. Links, pickles and special files are refused by name; private keys stay where they are."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from pathlib import Path

from pathspec import GitIgnoreSpec

from pilotlight.definitions.errors import Misuse
from pilotlight_core.model.steering import CONTROLS, MISLEADING

IGNORE_FILE = ".pilotlightignore"
IGNORED = (
    ".git/", ".hg/", ".svn/", "__pycache__/", "*.pyc", "*.pyo", ".venv/", "venv/", "node_modules/", ".env", ".env.*",
    ".tox/", ".nox/", ".mypy_cache/", ".ruff_cache/", ".pytest_cache/", ".ipynb_checkpoints/", "*.egg-info/",
    ".DS_Store", ".idea/", ".vscode/", ".pilotlight/", IGNORE_FILE,
)  # fmt: skip
"""Never packed, unless .pilotlightignore includes it (`!.env.example`): the last rule that matches holds."""
PICKLES = (".pkl", ".pickle", ".joblib")
"""Suffixes of pickles; no file is opened to find others."""
PRIVATE_KEY = re.compile(rb"\s*-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----")
KEY_HEAD_BYTES, LARGEST_KEY_BYTES = 256, 64 * 2**10
"""Of a file that may be one: what of it is read, and how large it is at most."""
STATE_MARK = "up.lock"
"""Marks the state of `pilotlight up`, which holds keys and is never packed."""
MAX_PATH = 512
STEERING = re.compile(f"[\t\n{CONTROLS}{MISLEADING}]")


class PackError(Misuse):
    """A folder cannot be packed; the message names the files."""


def ignore_rules(folder: Path) -> GitIgnoreSpec:
    """Return the ignore rules of `folder`.

    Raises:
        PackError: if its .pilotlightignore cannot be read.
    """
    own = folder / IGNORE_FILE
    try:
        lines = own.read_text("utf-8").splitlines() if own.is_file() else []
        return GitIgnoreSpec.from_lines([*IGNORED, *lines])
    except (OSError, ValueError) as error:
        raise PackError(f"{own} cannot be read: {error}.") from error


def files_below(
    folder: Path,
    leave_out: Container[Path] = (),
    *,
    allow_pickles: bool = False,
    private_keys: list[str] | None = None,
) -> Iterator[Path]:
    """Yield the files to pack, in a fixed order; `leave_out` are files and folders that are not packed.

    Private keys are not, such as the one that signs a deploy, unless the ignore file includes them (`!test.key`); their
    names are added to `private_keys`.

    Raises:
        PackError: naming a file that cannot be packed or read.
    """
    rules = ignore_rules(folder)
    open_folders = [folder]
    while open_folders:
        for path in _in_order(open_folders.pop()):
            inside = path.relative_to(folder).as_posix()
            is_folder = path.is_dir() and not path.is_symlink()
            if rules.match_file(f"{inside}/" if is_folder else inside) or path in leave_out:
                continue
            if is_folder:
                open_folders.append(path)
                continue
            checked = checked_file(path, inside, allow_pickles=allow_pickles)
            if rules.check_file(inside).include is None and is_private_key(checked):
                if private_keys is not None:
                    private_keys.append(inside)
                continue
            yield checked


def is_private_key(path: Path) -> bool:
    """Whether a file is one in PEM, by how it begins. One that cannot be read is said to be none: packing says why."""
    try:
        if path.stat().st_size > LARGEST_KEY_BYTES:
            return False
        with path.open("rb") as file:
            return PRIVATE_KEY.match(file.read(KEY_HEAD_BYTES)) is not None
    except OSError:
        return False


def _in_order(folder: Path) -> list[Path]:
    try:
        inside = sorted(folder.iterdir(), reverse=True)
        return inside if folder / STATE_MARK not in inside else []
    except OSError as error:
        message = f"{folder} cannot be read ({error.strerror}): name it in .pilotlightignore if it is not needed."
        raise PackError(message, field="files") from error


def checked_file(path: Path, inside: str, *, allow_pickles: bool = False) -> Path:
    """Return a file that can be packed as `inside`.

    Raises:
        PackError: naming it, and why it cannot.
    """
    why = None
    if path.is_symlink():
        why = "is a symlink: copy the file, or name it in .pilotlightignore"
    elif not path.is_file():
        why = "is neither a file nor a folder"
    elif not allow_pickles and path.suffix.lower() in PICKLES:
        why = "is a pickle, which can run code: save tensors as safetensors and data as JSON, or ignore it"
    elif "\\" in inside or STEERING.search(inside) or not _is_text(inside):
        why = "has a name that cannot travel"
    elif len(inside) > MAX_PATH:
        why = f"has a path of more than {MAX_PATH} characters"
    if why is not None:
        raise PackError(f"{inside!r} {why}.", field="files")
    return path


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
