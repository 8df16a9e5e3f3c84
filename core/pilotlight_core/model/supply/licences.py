"""Licences as SPDX expressions: what metadata comes to, and whether a package can be had without some. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from fnmatch import fnmatchcase

LICENCE_LENGTH = 300
MOST_BRACKETS = 32
"""Of one expression: it is read by a function that calls itself, and is a stranger's."""
_WORD = re.compile(r"\s*(\(|\)|[A-Za-z0-9][A-Za-z0-9.+:-]*)")
_CLASSIFIER = "License :: OSI Approved :: "
CLASSIFIERS = {
    "Academic Free License (AFL)": "AFL-3.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "Boost Software License 1.0 (BSL-1.0)": "BSL-1.0",
    "GNU Affero General Public License v3": "AGPL-3.0-only",
    "GNU Affero General Public License v3 or later (AGPLv3+)": "AGPL-3.0-or-later",
    "GNU General Public License (GPL)": "GPL-1.0-or-later",
    "GNU General Public License v2 (GPLv2)": "GPL-2.0-only",
    "GNU General Public License v2 or later (GPLv2+)": "GPL-2.0-or-later",
    "GNU General Public License v3 (GPLv3)": "GPL-3.0-only",
    "GNU General Public License v3 or later (GPLv3+)": "GPL-3.0-or-later",
    "GNU Lesser General Public License v2 (LGPLv2)": "LGPL-2.0-only",
    "GNU Lesser General Public License v2 or later (LGPLv2+)": "LGPL-2.0-or-later",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "GNU Lesser General Public License v3 or later (LGPLv3+)": "LGPL-3.0-or-later",
    "GNU Library or Lesser General Public License (LGPL)": "LGPL-2.0-or-later",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT No Attribution License (MIT-0)": "MIT-0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
    "Universal Permissive License (UPL)": "UPL-1.0",
    "zlib/libpng License": "Zlib",
}
"""What packages say of themselves in the older way."""
TEXTS = {
    "apache 2.0": "Apache-2.0", "apache-2.0": "Apache-2.0", "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0", "apache software license": "Apache-2.0", "bsd": "BSD-3-Clause",
    "bsd-2-clause": "BSD-2-Clause", "bsd-3-clause": "BSD-3-Clause", "bsd 3-clause": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause", "isc": "ISC", "mit": "MIT", "mit license": "MIT", "the mit license": "MIT",
    "mpl-2.0": "MPL-2.0", "mpl 2.0": "MPL-2.0", "psf": "PSF-2.0", "psf-2.0": "PSF-2.0", "unlicense": "Unlicense",
    "gpl": "GPL-1.0-or-later", "gplv2": "GPL-2.0-only", "gplv3": "GPL-3.0-only", "gpl-3.0": "GPL-3.0-only",
    "agplv3": "AGPL-3.0-only", "lgpl": "LGPL-2.0-or-later", "zlib": "Zlib", "0bsd": "0BSD",
}  # fmt: skip
"""And in whatever words they like."""


class LicenceFault(ValueError):
    """Why a text is no SPDX expression."""


def spdx_of(expression: str, text: str, classifiers: Iterable[str]) -> str:
    """What a package's metadata says of its licence; "": nothing that is known."""
    for said in (expression.strip(), TEXTS.get(text.strip().lower(), ""), text.strip()):
        if said and (said == expression.strip() or said in TEXTS.values() or _is_id(said)):
            try:
                can_have(said, lambda _: True)
            except LicenceFault:
                continue
            return said
    known = [
        CLASSIFIERS.get(each.removeprefix(_CLASSIFIER), "") for each in classifiers if each.startswith(_CLASSIFIER)
    ]
    return " OR ".join(dict.fromkeys(filter(None, known)))


def _is_id(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9.+-]+(?: (?:AND|OR|WITH) [A-Za-z0-9.+-]+)*", text) is not None and "-" in text


def refusing_part(expression: str, denied: Collection[str], allowed: Collection[str]) -> str:
    """The licence for which a package cannot be had; "": it can. A licence may be named with `*`, as `GPL-*`.

    "A OR B" can be had if one of them can, "A AND B" if both can. Without `allowed` all are that are not denied.

    Raises:
        LicenceFault: it is no SPDX expression.
    """
    refused: list[str] = []

    def is_fine(licence: str) -> bool:
        fine = not _is_named(licence, denied) and (not allowed or _is_named(licence, allowed))
        if not fine:
            refused.append(licence)
        return fine

    return "" if can_have(expression, is_fine) else refused[0]


def _is_named(licence: str, patterns: Collection[str]) -> bool:
    bare = licence.partition(" WITH ")[0]
    return any(fnmatchcase(name.lower(), each.lower()) for each in patterns for name in {licence, bare})


def can_have(expression: str, is_fine: Callable[[str], bool]) -> bool:
    """Whether an expression can be fulfilled with licences that are fine.

    Raises:
        LicenceFault.
    """
    if len(expression) > LICENCE_LENGTH:
        raise LicenceFault(f"it has more than {LICENCE_LENGTH} characters")
    if expression.count("(") > MOST_BRACKETS:
        raise LicenceFault(f"it has more than {MOST_BRACKETS} brackets")
    words = _words(expression)
    found = _either(words, is_fine)
    if words:
        raise LicenceFault(f"nothing is expected at {words[-1]!r}")
    return found


def _words(expression: str) -> list[str]:
    """The words, the first one last."""
    words, at = [], 0
    bare = expression.rstrip()
    while at < len(bare):
        found = _WORD.match(bare, at)
        if found is None:
            raise LicenceFault(f"no word is expected at {bare[at : at + 20]!r}")
        words.append(found[1])
        at = found.end()
    return words[::-1]


def _either(words: list[str], is_fine: Callable[[str], bool]) -> bool:
    found = _both(words, is_fine)
    while words and words[-1].upper() == "OR":
        words.pop()
        found = _both(words, is_fine) or found
    return found


def _both(words: list[str], is_fine: Callable[[str], bool]) -> bool:
    found = _one(words, is_fine)
    while words and words[-1].upper() == "AND":
        words.pop()
        found = _one(words, is_fine) and found
    return found


def _one(words: list[str], is_fine: Callable[[str], bool]) -> bool:
    if not words:
        raise LicenceFault("a licence is missing")
    word = words.pop()
    if word == "(":
        found = _either(words, is_fine)
        if not words or words.pop() != ")":
            raise LicenceFault("a ) is missing")
        return found
    if word == ")" or word.upper() in ("AND", "OR", "WITH"):
        raise LicenceFault(f"a licence is expected in the place of {word!r}")
    if words and words[-1].upper() == "WITH":
        words.pop()
        if not words or words[-1] in ("(", ")"):
            raise LicenceFault("an exception is missing")
        word = f"{word} WITH {words.pop()}"
    return is_fine(word)
