"""A container's limits, and the sentences about them."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.spec import Batching, FunctionSpec, MethodSpec, Mode
from pilotlight_runtime.containers.resource_limits import describe, frame_limit, limits_of, memory_text
from pilotlight_runtime.guest.frames import MAX_CHUNK, MAX_FRAME, MAX_VALUE
from pilotlight_runtime.sandbox.sandbox_port import ExitReason, SandboxExit

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


def test_frames_are_as_large_as_the_methods_need() -> None:
    """A unary answer, a chunk, or the inputs' worth of a batch; with room for what stands around it."""
    one = MethodSpec(name="", attribute="f")
    stream = MethodSpec(name="s", attribute="s", mode=Mode.GENERATOR)
    batch = MethodSpec(name="b", attribute="b", batching=Batching(max_batch_size=4))
    limits = [
        frame_limit(msgspec.structs.replace(SPEC, methods=methods))
        for methods in ((one,), (stream,), (one, stream), (one, batch))
    ]

    assert MAX_VALUE < limits[0] == limits[2] < MAX_FRAME // 2 + 2**20
    assert MAX_CHUNK < limits[1] < 2 * MAX_CHUNK
    assert limits[3] == MAX_FRAME


@pytest.mark.parametrize(
    ("code", "signal", "reason", "sentence"),
    [
        (3, None, "exited", "exit code 3"),
        (None, 11, "signal", "exit code 139 (SIGSEGV)"),
        (None, 40, "signal", "exit code 168 (unknown signal)"),
        (None, 9, "memory", "memory limit of 3.0 GiB reached (memory= raises it)"),
        (1, None, "pids", "limit of 512 processes and threads reached, then exit code 1"),
        (None, 9, "killed", "killed by the platform"),
        (1, None, "setup", "the sandbox could not be set up (exit code 1)"),
    ],
)
def test_an_end_is_told_in_words(code: int | None, signal: int | None, reason: ExitReason, sentence: str) -> None:
    """What the tenant can do something about is named."""
    assert describe(SandboxExit(code=code, signal=signal, reason=reason), SPEC) == sentence


def test_a_blank_has_a_memory_limit_too() -> None:
    """Before it is anybody's."""
    assert (
        describe(SandboxExit(code=None, signal=9, reason="memory"), None)
        == "memory limit of 2.0 GiB reached (memory= raises it)"
    )
    assert memory_text(512 * 2**20) == "512 MiB"
