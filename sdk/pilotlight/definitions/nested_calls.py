"""Finds calls through the platform in the byte code of functions, which cannot make them yet.

They are refused at the decorator, before a container without a network fails them.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from pilotlight.definitions.decorated import Decorated

REMOTE_VERBS = frozenset({"remote", "remote_gen", "map", "starmap", "spawn"})


def find_remote_call(function: Callable[..., Any]) -> str | None:
    """Return the first `other.remote` in a function's body where `other` is Decorated, or None."""
    plain = inspect.unwrap(function)
    code = getattr(plain, "__code__", None)
    if code is None:
        return None
    prepared = ""
    for name, path, calls in _attributes_of_globals(code):
        wrapper = plain.__globals__.get(name)
        last = path.rpartition(".")[2]
        # `Model().embed.remote` has one call before the verb; what a plain call returns may well have a `.map`.
        if last in REMOTE_VERBS and isinstance(wrapper, Decorated) and calls == wrapper.is_class:
            return path
        if _is_prepared(wrapper, path, last):
            prepared = path
    # What it has made is of no other use than a verb, perhaps of a local variable.
    return f"{prepared}(…).{verb}" if prepared and (verb := _verb_in(code)) else None


def _is_prepared(wrapper: Any, path: str, last: str) -> bool:
    """Whether a path is of `Function.from_name` or of a function's `options`."""
    if isinstance(wrapper, Decorated):
        return last == "options"
    of_class = isinstance(wrapper, type) and issubclass(wrapper, Decorated)
    return last == "from_name" and (of_class or path.endswith("pilotlight.Function.from_name"))


def _verb_in(code: CodeType) -> str | None:
    """Return a verb that the code takes of anything, also in what is nested in it."""
    found = next((name for name in code.co_names if name in REMOTE_VERBS), None)
    return found or next((v for part in code.co_consts if isinstance(part, CodeType) and (v := _verb_in(part))), None)


def _attributes_of_globals(code: CodeType) -> Iterator[tuple[str, str, int]]:
    """Yield (global, path, calls in it) of each `global.attribute` and `global().….attribute`."""
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
