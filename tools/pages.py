"""Hold the pages to the tree: `python -m tools.pages`.

A file that a page names in backticks, whole or by the end of its path, exists; so does a folder of the product that it
names from the root, `gateway/pilotlight_gateway/home/`, and what a link leads to. In `docs/design/structure` so does
each class and each method of one, `Home` and `Home.enqueue`. Each package of the product has a page
`docs/design/structure/PACKAGE.md` that names every room of it, shows where to start reading in each, and fits a screen.
A list begins after an empty line.
"""

# ruff: noqa: T201 - it is a command; printing is what it does

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Set
from os.path import normpath
from pathlib import Path
from typing import NamedTuple

from tools import reference
from tools.house import SOURCE, Module, modules
from tools.syntax import parsed

PAGES = ("*.md", "docs/**/*.md")
NAMED = re.compile(r"`(?:\.\.?/)*([\w/.-]+\.(?:py|toml|sh|conf))(?:::\w+)?`")
FOLDER = re.compile(r"`((?:[a-z]+)/pilotlight(?:_[a-z]+)?/[\w/]*)/`")
CLASS = re.compile(r"`([A-Z][a-z]\w*)(?:\.(\w+))?(?:\(\))?`")
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")
ITEM = re.compile(r"(-|\*|\d+\.) ")
OTHERS = frozenset({"app.py", "module.py", "main.py", "search.py"})
"""Files of tenants, which a page may name as examples."""
MAX_LINES = 50
"""What a screen shows."""


class TreeNames(NamedTuple):
    """What a page may name of a tree."""

    files: Set[str]
    """The ends of its files' paths, whole ones too."""
    folders: Set[str]


def tree_names(files: Iterable[str]) -> TreeNames:
    """The names in a tree of these files, paths from its root."""
    split = [path.split("/") for path in files]
    return TreeNames(
        {"/".join(parts[-count:]) for parts in split for count in range(1, len(parts) + 1)},
        {"/".join(parts[:count]) for parts in split for count in range(1, len(parts))},
    )


def missing_files(text: str, names: TreeNames) -> list[str]:
    """The files and folders that a page names and the tree does not have."""
    named = {name for name in NAMED.findall(text) if name not in names.files and name not in OTHERS}
    return sorted(named | {f"{name}/" for name in FOLDER.findall(text) if name not in names.folders})


def missing_links(text: str, page: str, paths: Collection[str]) -> list[str]:
    """The files and folders that a page links to and that are not among `paths`; both are paths from the root."""
    targets = {link: normpath(f"{page}/../{link}") for link in LINK.findall(text)}
    return sorted(link for link, target in targets.items() if target not in paths)


def glued_lists(text: str) -> list[str]:
    """The first lines of lists that follow a paragraph without an empty line: to the site they are more of it."""
    found, before, fenced = [], "", False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and ITEM.match(line) and before.strip() and not ITEM.match(before) and before[0] != " ":
            found.append(line)
        before = line
    return found


def missing_classes(text: str, defined: Mapping[str, Collection[str]]) -> list[str]:
    """The classes, and the methods of them, that a page names and that are not `defined`: class -> its members."""
    return sorted(
        {
            f"{name}.{member}" if member else name
            for name, member in CLASS.findall(text)
            if name not in defined or (member and member not in defined[name])
        }
    )


def classes(known: Iterable[Module]) -> dict[str, set[str]]:
    """The product's classes and aliases of types, with the functions and fields of each."""
    found: dict[str, set[str]] = {}
    for module in known:
        for node in parsed(module.path).body:
            if isinstance(node, ast.ClassDef):
                members = {n.name for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
                members |= {
                    n.target.id for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
                }
                found.setdefault(node.name, set()).update(members)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                found.setdefault(node.targets[0].id, set())
    return found


def page_faults(package: str, text: str | None, rooms: Iterable[str]) -> list[str]:
    """What is wrong with the page of a package; `rooms` are its folders as paths from the package, without itself."""
    page = f"docs/design/structure/{package}.md"
    if text is None:
        return [f"{page} is missing"]
    lines = len(text.splitlines())
    wrong = [f"{page}: {lines} lines, {MAX_LINES} allowed"] if lines > MAX_LINES else []
    return wrong + [f"{page} does not name `{room}/`" for room in rooms if f"`{room}/`" not in text]


def rooms_of(package: str, known: Iterable[Module]) -> list[str]:
    """The folders of a package, as paths from it: `http/endpoints`."""
    named = {m.room for m in known if m.path.is_relative_to(Path(package).resolve())}
    return sorted(room.replace(".", "/").partition("/")[2] for room in named if "." in room)


def main() -> int:
    """Print what is wrong; 1 if anything is."""
    root = Path(__file__).parents[1]
    hidden = {path.name for path in root.iterdir() if path.name.startswith(".")}
    files = [
        path.relative_to(root).as_posix()
        for folder in root.iterdir()
        if folder.name not in hidden or folder.name == ".ci"
        for path in ([folder] if folder.is_file() else folder.rglob("*"))
    ]
    made = [f"{reference.FOLDER}/{name}" for name in reference.PAGES]
    pages = sorted(
        path
        for pattern in PAGES
        for path in root.glob(pattern)
        if path.name != "CHANGELOG.md" and path.relative_to(root).as_posix() not in made
    )
    names = tree_names(files)
    wrong = [
        f"{page.relative_to(root)}: `{name}` does not exist"
        for page in pages
        for name in missing_files(page.read_text(), names)
    ]
    paths = {"/".join(path.split("/")[:count]) for path in [*files, *made] for count in range(1, path.count("/") + 2)}
    wrong += [
        f"{page.relative_to(root)}: the link to {link} leads nowhere"
        for page in pages
        for link in missing_links(page.read_text(), page.relative_to(root).as_posix(), paths)
    ]
    wrong += [
        f"{page.relative_to(root)}: no empty line before the list {line[:40]!r}"
        for page in pages
        for line in glued_lists(page.read_text())
    ]
    known = modules(root).values()
    defined = classes(known)
    wrong += [
        f"{page.relative_to(root)}: `{name}` does not exist"
        for page in pages
        if page.parent.name == "structure"
        for name in missing_classes(page.read_text(), defined)
    ]
    for package in SOURCE:
        page = root / "docs/design/structure" / f"{package}.md"
        below = rooms_of(str(root / package), known)
        wrong += page_faults(package, page.read_text() if page.exists() else None, below)
    print(f"pages      {len(pages)} pages name files, {len(SOURCE)} show the rooms of a package")
    for sentence in wrong:
        print(f"error      {sentence}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
