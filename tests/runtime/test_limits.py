"""A container's limits, and the sentences about them."""

from __future__ import annotations

import pytest

from pilotlight_core.model.spec import FunctionSpec, MethodSpec
from pilotlight_runtime.limits import describe, limits_of, memory_text
from pilotlight_runtime.sandbox.port import Exit, Reason

SPEC = FunctionSpec(
    name="f",
    module="app",
    qualname="f",
    methods=(MethodSpec(name="", attribute="f"),),
    memory=3 * 2**30,
    cpu=0.5,
)


def test_limits_are_the_functions() -> None:
    """Memory and processors; the rest is the platform's."""
    assert (limits_of(SPEC).memory_bytes, limits_of(SPEC).cpu_millis) == (3 * 2**30, 500)


@pytest.mark.parametrize(
    ("code", "signal", "reason", "sentence"),
    [
        (3, None, "exited", "exit code 3"),
        (None, 11, "signal", "exit code 139 (SIGSEGV)"),
        (None, 40, "signal", "exit code 168 (unknown signal)"),
        (None, 9, "memory", "memory limit of 3.0 GiB reached"),
        (1, None, "pids", "limit of 512 processes and threads reached, then exit code 1"),
        (None, 9, "killed", "killed by the platform"),
        (1, None, "setup", "the sandbox could not be set up (exit code 1)"),
    ],
)
def test_an_end_is_told_in_words(code: int | None, signal: int | None, reason: Reason, sentence: str) -> None:
    """What the tenant can do something about is named."""
    assert describe(Exit(code=code, signal=signal, reason=reason), SPEC) == sentence


def test_a_blank_has_a_memory_limit_too() -> None:
    """Before it is anybody's."""
    assert describe(Exit(code=None, signal=9, reason="memory"), None) == "memory limit of 2.0 GiB reached"
    assert memory_text(512 * 2**20) == "512 MiB"
