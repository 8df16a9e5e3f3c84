"""The pipeline of a class: hooks that its calls run through before and behind the method, on CPU slots.

A deploy makes a *companion* of each hook: a function of the same bundle, called `Class~pre` or `Class~post`, a version
and containers of its own. No name of a user's has a `~`, so nobody calls a companion but the class's own calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

import msgspec

SEPARATOR = "~"
"""Between the name of a class and what its companion is."""
HOOK_MEMORY = 2 * 2**30
"""Bytes of the host that a container of a hook is promised, where the hook says nothing."""
LEAST_HOOK_MEMORY, MOST_HOOK_MEMORY = 64 * 2**20, 2**44
LONGEST_HOOK_NAME = 100
LONGEST_HOOKED_NAME = 58
"""Of a class, so that its companions have names of 63 characters at most."""


class HookKind(StrEnum):
    """Where in a call a hook runs."""

    PREPROCESS = "preprocess"  # before the method, which gets what it returns
    POSTPROCESS = "postprocess"  # behind the method, whose answer it gets


SUFFIXES = {HookKind.PREPROCESS: "pre", HookKind.POSTPROCESS: "post"}
"""Of the companions' names, behind the separator."""


class CallHook(msgspec.Struct, frozen=True, kw_only=True):
    """A hook, and the containers that it runs in."""

    attribute: str
    """The method of the class."""
    is_async: bool = False
    enter: tuple[str, ...] = ()
    """Methods that run once in each of its containers, before its first call."""
    takes: str = ""
    """Of a postprocess hook: the name of its parameter."""
    cpu: float | None = None
    """Cores; None: as of any function that names none."""
    memory: int = HOOK_MEMORY
    max_containers: int = 10
    max_inputs: int = 1
    version: str = ""
    """The id of its companion's version; "": of a class that is not deployed."""


class Pipeline(msgspec.Struct, frozen=True, kw_only=True):
    """What a call of the class runs through beside its method."""

    preprocess: CallHook | None = None
    postprocess: CallHook | None = None
    takes: dict[str, str] = {}
    """Method -> its only parameter, which what `preprocess` returns is for; "": it returns the arguments by name."""

    @property
    def hooks(self) -> dict[HookKind, CallHook]:
        """Those that there are, in their order."""
        found = {HookKind.PREPROCESS: self.preprocess, HookKind.POSTPROCESS: self.postprocess}
        return {kind: hook for kind, hook in found.items() if hook is not None}


def companion_name(function: str, kind: HookKind) -> str:
    """What the companion of a class's hook is called."""
    return f"{function}{SEPARATOR}{SUFFIXES[kind]}"


def is_companion(function: str) -> bool:
    """Whether a function is the companion of another one."""
    return SEPARATOR in function


def hook_place(function: str) -> tuple[str, str]:
    """The class of a companion and its hook's kind, such as ("MiniLM", "preprocess"); of any other its own name, ""."""
    name, _, suffix = function.partition(SEPARATOR)
    return name, next((kind.value for kind, known in SUFFIXES.items() if known == suffix), "")


def pipeline_fault(pipeline: Pipeline, name: str, methods: Mapping[str, bool]) -> str:
    """Why a class of this name ("": it is no class) cannot have this pipeline; "": it can.

    `methods` has each of its methods, and whether it yields.
    """
    hooks, generators = pipeline.hooks, [method for method, yields in methods.items() if yields]
    if not name:
        return "@preprocess() and @postprocess() are for classes"
    if len(name) > LONGEST_HOOKED_NAME:
        return f"a class with hooks has a name of at most {LONGEST_HOOKED_NAME} characters: say a shorter name="
    if not hooks:
        return "expected a hook"
    if pipeline.postprocess is not None and generators:
        return (
            f"@postprocess() gets one answer, and {', '.join(sorted(generators))} yields: "
            "let the method yield what callers get"
        )
    if pipeline.postprocess is not None and not pipeline.postprocess.takes.isidentifier():
        return "@postprocess() takes one parameter, the method's answer"
    expected = {*methods} if pipeline.preprocess is not None else set[str]()
    if {*pipeline.takes} != expected:
        return "takes: expected each method, of a class with @preprocess() alone"
    if not all(not name or name.isidentifier() for name in pipeline.takes.values()):
        return "takes: expected names of parameters"
    return next((why for kind, hook in hooks.items() for why in _hook_faults(kind, hook)), "")


def _hook_faults(kind: HookKind, hook: CallHook) -> Iterator[str]:
    named = f"@{kind}()"
    if not all(one.isidentifier() and len(one) <= LONGEST_HOOK_NAME for one in (hook.attribute, *hook.enter)):
        yield f"{named}: expected names of methods, of at most {LONGEST_HOOK_NAME} characters"
    if hook.cpu is not None and not 0.1 <= hook.cpu <= 256:
        yield f"{named}: cpu={hook.cpu:g} is out of range: expected 0.1 to 256 cores"
    if not LEAST_HOOK_MEMORY <= hook.memory <= MOST_HOOK_MEMORY:
        yield f"{named}: memory is out of range: expected 64 MiB to 16 TiB"
    if not 1 <= hook.max_containers <= 10_000:
        yield f"{named}: max_containers={hook.max_containers} is out of range: expected 1 to 10000"
    if not 1 <= hook.max_inputs <= 10_000:
        yield f"{named}: max_inputs={hook.max_inputs} is out of range: expected 1 to 10000"
    if hook.version:
        yield f"{named}: the platform says which version its companion is"
