"""A container's limits, and the sentences about them."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.messages.agent_questions import MOST_REQUEST
from pilotlight_core.model.messages.node_messages import SandboxCeilings
from pilotlight_core.model.spec import Batching, FunctionSpec, MethodSpec, Mode
from pilotlight_runtime.containers.blanks.resource_limits import (
    BASE,
    blank_limits,
    describe,
    frame_limit,
    keeps_file_systems,
    limits_of,
    memory_text,
    over_ceiling,
)
from pilotlight_runtime.guest.frames import MAX_FRAME, MAX_VALUE
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
    """Memory and processors; the rest is the platform's, unless it is named."""
    plain = limits_of(SPEC, BASE)
    assert (plain.memory_bytes, plain.cpu_millis) == (3 * 2**30, 500)
    assert (plain.shm_bytes, plain.tmp_bytes, plain.pids) == (BASE.shm_bytes, BASE.tmp_bytes, BASE.pids)
    assert plain.file_bytes == BASE.file_bytes

    named = limits_of(msgspec.structs.replace(SPEC, shm=2**20, scratch=2 * 2**30, pids=64), BASE)
    assert (named.shm_bytes, named.tmp_bytes, named.pids) == (2**20, 2 * 2**30, 64)
    assert named.file_bytes == 2 * 2**30  # else one file could not fill it


def test_a_ceiling_binds_what_names_nothing() -> None:
    """Blanks, and the functions that take them; a ceiling above what they get anyway changes nothing."""
    low = blank_limits(SandboxCeilings(shm=64 * 2**20, scratch=2**20, pids=64))
    plain = limits_of(SPEC, low)

    assert (low.shm_bytes, low.tmp_bytes, low.pids) == (64 * 2**20, 2**20, 64)
    assert (plain.shm_bytes, plain.tmp_bytes, plain.pids) == (64 * 2**20, 2**20, 64)
    assert keeps_file_systems(plain, low)
    assert blank_limits(SandboxCeilings(shm=2**40, scratch=2**40, pids=4096)) == BASE


def test_what_a_started_sandbox_cannot_get_is_known() -> None:
    """The sizes of its file systems; processes are counted by its cgroup, which changes."""
    limits: list[dict[str, int]] = [{}, {"pids": 64}, {"shm": 2**20}, {"scratch": 2**20}]
    specs = [msgspec.structs.replace(SPEC, **limit) for limit in limits]
    assert [keeps_file_systems(limits_of(spec, BASE), BASE) for spec in specs] == [True, True, False, False]


def test_what_is_over_the_platforms_ceiling_is_named() -> None:
    """With what there would be; what is named nowhere is over none."""
    most = SandboxCeilings(shm=2**20, scratch=2**20, pids=64)
    limits = [{}, {"shm": 2**20, "scratch": 2**20, "pids": 64}, {"shm": 2**21}, {"scratch": 2**31}, {"pids": 65}]
    assert [over_ceiling(msgspec.structs.replace(SPEC, **limit), most) for limit in limits] == [
        "", "", "shm= of 2 MiB, and this node allows 1 MiB", "scratch= of 2.0 GiB, and this node allows 1 MiB",
        "pids=65, and this node allows 64",
    ]  # fmt: skip


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
    assert MOST_REQUEST < limits[1] < MAX_VALUE  # it may call others
    assert limits[3] == MAX_FRAME


@pytest.mark.parametrize(
    ("code", "signal", "reason", "sentence"),
    [
        (3, None, "exited", "exit code 3"),
        (None, 11, "signal", "exit code 139 (SIGSEGV)"),
        (None, 40, "signal", "exit code 168 (unknown signal)"),
        (None, 9, "memory", "memory limit of 3.0 GiB reached (memory= raises it)"),
        (1, None, "pids", "limit of 512 processes and threads reached (pids= raises it), then exit code 1"),
        (None, 9, "killed", "killed by the platform"),
        (1, None, "setup", "the sandbox could not be set up (exit code 1)"),
    ],
)
def test_an_end_is_told_in_words(code: int | None, signal: int | None, reason: ExitReason, sentence: str) -> None:
    """What the tenant can do something about is named."""
    assert describe(SandboxExit(code=code, signal=signal, reason=reason), limits_of(SPEC, BASE)) == sentence


def test_a_blank_has_a_memory_limit_too() -> None:
    """Before it is anybody's."""
    assert (
        describe(SandboxExit(code=None, signal=9, reason="memory"), BASE)
        == "memory limit of 2.0 GiB reached (memory= raises it)"
    )
    assert memory_text(512 * 2**20) == "512 MiB"
