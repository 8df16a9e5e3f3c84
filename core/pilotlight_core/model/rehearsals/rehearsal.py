"""What a container of a version does before calls reach it, and again from time to time: warm-up examples, a check.

    warm up   each example runs as a call would, in order; what it answers is discarded
    check     methods marked for it, and one example whose answer is known, within a bounded time

Either one's failure is the start's. The check runs again every `check_every` seconds.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

MOST_WARMUPS = 32
"""Examples of a function that run before its first call."""
MOST_CHECKS = 16
LONGEST_NAME = 100
"""Characters of a check's name."""
MOST_INPUTS = 2_000
"""Of all those examples together."""
MOST_EXAMPLE_BYTES = 64 * 1024
"""Of all examples of a function together, encoded."""
CHECK_EVERY_S = 300.0
"""Between two checks, where a function has one and says nothing else."""
LEAST_CHECK_EVERY_S, MOST_CHECK_EVERY_S = 5.0, 86_400.0
CHECK_TIMEOUT_S = 10.0
"""For one check, where the function says nothing else."""
MOST_CHECK_TIMEOUT_S = 300.0
TOLERANCE = 1e-3
"""How far a number of a checked answer may be from the expected one, as a part of it, or absolutely near 0."""


class WarmupExample(msgspec.Struct, frozen=True, kw_only=True):
    """One call that every container makes of itself before it takes others."""

    method: str = ""
    """Of a class: the method; "": the only one."""
    inputs: tuple[bytes, ...]
    """The msgpack of the object of named arguments; several, of a batched method, run as one batch."""


class CheckExample(msgspec.Struct, frozen=True, kw_only=True):
    """One call whose answer is known."""

    method: str = ""
    input: bytes
    output: bytes
    """The msgpack of the expected answer; of a generator, of the list of its chunks."""
    tolerance: float = TOLERANCE


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """What makes a container ready, and shows that it still is."""

    warmup: tuple[WarmupExample, ...] = ()
    checks: tuple[str, ...] = ()
    """Of a class: methods without parameters that raise, or return False, when an instance is unfit."""
    example: CheckExample | None = None
    check_every: float = 0.0
    """Seconds between two checks; 0: there is none after the start."""
    check_timeout: float = CHECK_TIMEOUT_S
    """Seconds that one check may take."""

    @property
    def has_check(self) -> bool:
        return bool(self.checks) or self.example is not None

    @property
    def example_bytes(self) -> int:
        """Bytes of its examples, encoded."""
        known = 0 if self.example is None else len(self.example.input) + len(self.example.output)
        return known + sum(len(data) for one in self.warmup for data in one.inputs)


def rehearsal_fault(rehearsal: Rehearsal, batches: Mapping[str, int]) -> tuple[str, str]:
    """Why a function cannot have this, and the option at fault; ("", ""): it can.

    `batches` has every method, and the size of its largest batch, 0 if it takes none.
    """
    if why := _warmup_fault(rehearsal, batches):
        return "warmup", why
    if len(rehearsal.checks) > MOST_CHECKS:
        return "checks", f"it has {len(rehearsal.checks)} methods marked @check(), {MOST_CHECKS} are the most"
    if not all(name.isidentifier() and len(name) <= LONGEST_NAME for name in rehearsal.checks):
        return "checks", f"expected names of methods, of at most {LONGEST_NAME} characters"
    if rehearsal.example is not None and (why := _method_fault(rehearsal.example.method, batches)):
        return "check", why
    if rehearsal.example is not None and not 0 <= rehearsal.example.tolerance <= 1:
        return "check", f"tolerance={rehearsal.example.tolerance:g} is out of range: expected 0 to 1"
    every, least, most_s = rehearsal.check_every, LEAST_CHECK_EVERY_S, MOST_CHECK_EVERY_S
    if every and not least <= every <= most_s:
        return "check_every", f"{every:g} is out of range: expected {least:g} to {most_s:g} seconds, or 0 for never"
    if not 0 < rehearsal.check_timeout <= MOST_CHECK_TIMEOUT_S:
        return "check_timeout", f"expected more than 0 and at most {MOST_CHECK_TIMEOUT_S:g} seconds"
    return "", ""


def _warmup_fault(rehearsal: Rehearsal, batches: Mapping[str, int]) -> str:
    if len(rehearsal.warmup) > MOST_WARMUPS:
        return f"it has {len(rehearsal.warmup)} examples, {MOST_WARMUPS} are the most"
    for example in rehearsal.warmup:
        if why := _method_fault(example.method, batches):
            return why
        most = max(1, batches[_named(example.method, batches)])
        if not 1 <= len(example.inputs) <= most:
            takes = f"batches of at most {most}" if most > 1 else "one input at a time"
            return f"an example has {len(example.inputs)} inputs, and the method takes {takes}"
    if (count := sum(len(example.inputs) for example in rehearsal.warmup)) > MOST_INPUTS:
        return f"its examples have {count} inputs together, {MOST_INPUTS} are the most"
    if (size := rehearsal.example_bytes) > MOST_EXAMPLE_BYTES:
        return f"its examples have {size} bytes together, {MOST_EXAMPLE_BYTES} are the most"
    return ""


def _named(method: str, batches: Mapping[str, int]) -> str:
    """The name of a method; "" is the only one."""
    return next(iter(batches)) if not method and len(batches) == 1 else method


def _method_fault(method: str, batches: Mapping[str, int]) -> str:
    if _named(method, batches) in batches:
        return ""
    known = ", ".join(name for name in batches if name) or "none, it is a plain function"
    what = f"there is no method {method!r}" if method else "an example must name a method"
    return f"{what}; its methods: {known}"
