"""Synchronous functions, several calls at a time."""

from __future__ import annotations

import os
from pathlib import Path

from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_runtime.guest.frames import CancelCall, ChunkOut, Result, WindowUpdate
from tests.runtime.guest.apps import shop
from tests.runtime.guest.harness import Guest, spec_of


def test_as_many_run_as_there_are_inputs(tmp_path: Path) -> None:
    """Three hold at once, the fourth waits and can be taken back at once, and all end. Cancels come in order."""
    fifos = [tmp_path / str(n) for n in range(3)]
    for fifo in fifos:
        os.mkfifo(fifo)
    with Guest() as guest:
        guest.load(spec_of(shop.Crowd))
        for fifo in fifos:
            guest.invoke(fifo.name, "hold", path=str(fifo))
        assert [guest.line() for _ in fifos] == ["holding"] * 3
        guest.invoke("waiting", "hold", path="/")
        guest.send(CancelCall(call_id="1"), CancelCall(call_id="waiting"))
        assert guest.result() == Result(call_id="waiting", outcome=Outcome.CANCELLED, started=False)
        answers = {}
        for fifo in reversed(fifos):
            fifo.write_text("go")
            answers[fifo.name] = guest.result().outcome
        code, _, err = guest.leave()

    assert answers == {"2": Outcome.OK, "1": Outcome.CANCELLED, "0": Outcome.OK}
    assert (code, err) == (0, "")


def test_streams_beside_each_other_have_windows_of_their_own() -> None:
    """One that waits does not hold up the other; a cancel wakes the one that waits."""
    with Guest() as guest:
        guest.load(spec_of(shop.Crowd))
        guest.invoke("slow", "each", window=1, upto=3)
        assert isinstance(guest.receive(), ChunkOut)
        guest.invoke("fast", "each", upto=3)
        chunks, result = guest.chunks()
        assert (chunks, result.call_id) == ([0, 1, 2], "fast")
        guest.send(WindowUpdate(call_id="slow", upto=1))
        assert guest.receive().seq == 2
        guest.send(CancelCall(call_id="slow"))
        result = guest.result()

        assert (result.call_id, result.outcome, result.last_seq) == ("slow", Outcome.CANCELLED, 2)
        assert [guest.line(), guest.line()] == ["closed", "closed"]
