"""What an answer says about its process."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.call_messages import Outcome, RemoteError
from pilotlight_runtime.guest.exits import exit_if_fatal, is_fatal
from pilotlight_runtime.guest.frames import BatchResult, GuestItemResult, Result
from tests.runtime.guest.apps import plain
from tests.runtime.guest.harness import Guest, spec_of


@pytest.mark.parametrize(
    ("message", "fatal"),
    [
        ("CUDA error: device-side assert triggered", True),
        ("CUDA error: an illegal memory access was encountered", True),
        ("CUDA out of memory. Tried to allocate 2.00 GiB", False),
        ("an illegal memory access of another kind", False),
    ],
)
def test_a_dead_device_is_known(message: str, fatal: bool) -> None:
    """After these errors of CUDA no call can succeed in this process; running out of memory is none of them."""
    assert is_fatal(RemoteError(type="torch.AcceleratorError", message=message)) is fatal


def no_flush() -> None:
    raise AssertionError("nothing ends")


def test_other_answers_change_nothing() -> None:
    """Good ones, failed ones, and a batch in which single items failed."""
    error = RemoteError(type="torch.OutOfMemoryError", message="CUDA out of memory")
    exit_if_fatal(Result(call_id="a"), no_flush)
    exit_if_fatal(Result(call_id="a", outcome=Outcome.RAISED, error=error), no_flush)
    exit_if_fatal(
        BatchResult(batch=1, results=(GuestItemResult(call_id="a", outcome=Outcome.RAISED, error=error),)), no_flush
    )


def test_a_guest_with_a_dead_device_answers_and_ends() -> None:
    """The call gets its error; the container is replaced instead of failing all that follow."""
    with Guest() as guest:
        guest.load(spec_of(plain.act))
        guest.invoke("a", kind="lose_device")
        assert guest.result().outcome is Outcome.RAISED
        code, _, err = guest.end()

    assert code == 69
    assert err.startswith("pilotlight: the device's context is dead, so this container ends: CUDA error")
