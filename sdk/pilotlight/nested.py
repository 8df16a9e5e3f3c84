"""Whether a function calls another one through the platform, which it cannot do yet.

Found by reading byte code, so that it fails where it is written and not in a container that has no network.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from pilotlight.marks import Wrapper

REMOTE_VERBS = frozenset({"remote", "remote_gen", "map", "starmap", "spawn"})


def remote_call_in(function: Callable[..., Any]) -> str | None:
    """The first `other.remote` in the function's body where `other` is a deployed function; None if there is none."""
    plain = inspect.unwrap(function)
    code = getattr(plain, "__code__", None)
    if code is None:
        return None
    for name, path, calls in _attributes_of_globals(code):
        wrapper = plain.__globals__.get(name)
        # `Model().embed.remote` has one call before the verb; what a plain call returns may well have a `.map`.
        if path.rpartition(".")[2] in REMOTE_VERBS and isinstance(wrapper, Wrapper) and calls == wrapper.is_class:
            return path
    return None


def _attributes_of_globals(code: CodeType) -> Iterator[tuple[str, str, int]]:
    """(global, path, calls in it) of each `global.attribute` and `global().….attribute` in the code."""
    name, path, calls = "", "", 0
    for instruction in dis.get_instructions(code):
        operation = instruction.opname
        if operation == "LOAD_GLOBAL":
            name = path = str(instruction.argval)
            calls = 0
        elif operation in ("LOAD_ATTR", "LOAD_METHOD") and name:
            path += f".{instruction.argval}"
            yield name, path, calls
        elif operation == "CALL":
            path += "()"
            calls += 1
        elif operation not in ("PRECALL", "CACHE", "PUSH_NULL"):
            name = ""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _attributes_of_globals(constant)
