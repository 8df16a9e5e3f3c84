"""Saving and reading a state: at home, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pilotlight import App, Misuse, OptionError, Resumable, checkpoint, resume
from pilotlight_core.model import values
from pilotlight_core.model.messages.running_code import RUNNING_CALL
from pilotlight_core.model.streams.resuming import MAX_STATE
from pilotlight_core.model.streams.running_stream import RUNNING_STREAM

app = App("saving")


@app.gpu_function(resumable=Resumable(resume_s=5, migrations=1))
def count(upto: int) -> Iterator[int]:
    """Count, saving how far it is."""
    number = resume(0)
    while number < upto:
        number += 1
        yield number
        checkpoint(number)


def tell() -> Iterator[int]:
    """Another one."""
    yield 1


class Running:
    """A stream that runs here."""

    def __init__(self, saved: bytes = b"") -> None:
        self.is_resumable = True
        self.saved = saved
        self.why = ""

    def read_state(self) -> bytes:
        return self.saved

    def save_state(self, state: bytes) -> str:
        self.saved = state
        return self.why


def test_at_home_it_begins_and_saves_nothing() -> None:
    """The same code runs."""
    assert list(count.local(3)) == [1, 2, 3]
    assert count.spec.resumable == Resumable(resume_s=5, migrations=1)


def test_a_saved_state_is_where_it_goes_on() -> None:
    """It was copied: what becomes of it afterwards changes nothing."""
    state = {"n": [1]}
    token = RUNNING_STREAM.set(running := Running())
    try:
        checkpoint(state)
        state["n"].append(2)
        assert resume({"n": []}) == {"n": [1]}
        running.why = "call resume first"
        with pytest.raises(Misuse, match=r"checkpoint\(\): call resume first"):
            checkpoint(1)
    finally:
        RUNNING_STREAM.reset(token)
    assert values.decode(running.saved) == 1


@pytest.mark.parametrize(
    ("state", "says"),
    [(object(), "the state cannot be sent"), (b"x" * MAX_STATE, f"of which {MAX_STATE} are the most")],
)
def test_a_state_that_cannot_travel_is_refused(state: object, says: str) -> None:
    """At home too, so that it is seen before there is anything to lose."""
    with pytest.raises(Misuse, match=says):
        checkpoint(state)


def test_a_call_that_is_not_resumable_saves_nothing() -> None:
    """Its code would believe that it does."""
    token = RUNNING_CALL.set("call_1")
    try:
        with pytest.raises(Misuse, match="generators of functions with resumable=True"):
            resume(0)
        with pytest.raises(Misuse, match="generators of functions with resumable=True"):
            checkpoint(0)
    finally:
        RUNNING_CALL.reset(token)


def test_only_generators_are_resumable() -> None:
    """Refused where it is written."""
    with pytest.raises(OptionError, match="resumable= is for generators"):

        @app.gpu_function(resumable=True)
        def plain() -> int:
            return 1

    with pytest.raises(OptionError, match="resumable='yes': expected True, False or Resumable"):
        app.gpu_function(resumable="yes")(tell)  # type: ignore[call-overload]
