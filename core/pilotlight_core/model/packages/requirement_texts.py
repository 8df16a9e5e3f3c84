"""What a tenant may ask for of a package index (`requirements=`). Pure.

    duckdb==1.3.0
    pydantic[email]>=2,<3
    tomli>=2; python_version < "3.11"

A name, perhaps with extras, versions and a marker, and nothing else that installers understand: an option would name
another index, an address or a path would be fetched past it, and a variable would be replaced by what stands in the
environment of whoever installs. What is not refused here is written into a file that an installer reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST_REQUIREMENTS = 200
"""Of an app."""
LONGEST_REQUIREMENT = 300
EXPECTED = 'expected a package of the index, such as "duckdb==1.3.0"'
NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?"
# Compiled when they are first used: every guest imports this module, and few have requirements.
_VERSION = r"[A-Za-z0-9][A-Za-z0-9.*+!_-]{0,63}"
_CLAUSE = rf"(?:==|~=|!=|<=|>=|<|>) *{_VERSION}"
_REQUIREMENT = (
    rf"{NAME}"
    rf"(?: *\[ *{NAME}(?: *, *{NAME}){{0,15}} *\])?"
    rf"(?: *{_CLAUSE}(?: *, *{_CLAUSE}){{0,15}})?"
    r"""(?: *; *[A-Za-z0-9_.'"<>=!~(),*+ -]{1,200})?"""
)
_FILES = (".whl", ".tar.gz", ".zip", ".tar.bz2", ".tgz")
_SEPARATORS = r"[-_.]+"


def requirement_fault(text: object) -> str:
    """Why this is no requirement, as the rest of a sentence; "" if it is one."""
    if not isinstance(text, str):
        return f"{text!r}: {EXPECTED}"
    shown = repr(text if len(text) <= LONGEST_REQUIREMENT else f"{text[:LONGEST_REQUIREMENT]}…")
    if len(text) > LONGEST_REQUIREMENT:
        return f"{shown} has more than {LONGEST_REQUIREMENT} characters"
    bare, _, marker = text.partition(";")
    if text.startswith("-") or " -" in bare or " --" in marker:
        return f"{shown}: options of installers are not taken, since operators say which index there is; {EXPECTED}"
    if "@" in bare or "://" in text:
        return f"{shown}: addresses and version control are not taken, only packages of the index; {EXPECTED}"
    if "/" in bare or "\\" in text or text.startswith((".", "~")) or bare.strip().lower().endswith(_FILES):
        return f"{shown}: paths are not taken: put your own modules beside the code, with which they travel; {EXPECTED}"
    if "$" in text:
        return f"{shown}: variables are not replaced; {EXPECTED}"
    return "" if re.fullmatch(_REQUIREMENT, text) else f"{shown}: {EXPECTED}"


def requirements_fault(texts: object) -> str:
    """Why these are no requirements, as the rest of a sentence; "" if they are."""
    if not isinstance(texts, list | tuple):
        return f"{EXPECTED}, in a list"
    if len(texts) > MOST_REQUIREMENTS:
        return f"at most {MOST_REQUIREMENTS} are possible, not {len(texts)}"
    faults = (requirement_fault(text) for text in texts)
    why = next(filter(None, faults), "")
    return why or ("" if len(set(texts)) == len(texts) else "one of them stands there twice")


def normal_name(name: str) -> str:
    """The one spelling of a package's name (PEP 503)."""
    return re.sub(_SEPARATORS, "-", name).lower()


def requirements_of_file(text: str) -> tuple[str, ...]:
    """The requirements of a requirements.txt, each once.

    Raises:
        ValueError: names the line that is none, and says why.
    """
    found: dict[str, None] = {}
    for number, line in _lines(text):
        if why := requirement_fault(line):
            raise ValueError(f"line {number}: {why}")
        found[line] = None
    return tuple(found)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line that says something, without its comment, and the number of its first part."""
    held, first = "", 0
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        first = first if held else number
        bare = re.sub(r"(^|\s)#.*", "", held + line).strip()
        if bare.endswith("\\"):
            held = bare.removesuffix("\\")
            continue
        held = ""
        if bare:
            yield first, bare
    if held.strip():
        yield first, held.strip()
