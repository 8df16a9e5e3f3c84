"""The notes of calls that wait, and what the next agent finds of them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_runtime.calls.waiting_calls import NO_NOTE, SLOT, SLOTS, WaitingCall, WaitingCalls, notes_in
from tests.builders.calls import run
from tests.example_counts import examples

BOOT = "6f0f4cbe-5f34-4a0c-9b07-0f4e9c3ce8a1"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the notes are."""
    return tmp_path / "waiting"


def test_the_next_agent_finds_what_had_not_started(path: Path) -> None:
    """And nothing of what had."""
    first = WaitingCalls(path, BOOT)
    first.add(run("waits", grant=3, gateway="gw-2"))
    first.remove(first.add(run("started")))

    second = WaitingCalls(path, BOOT)

    assert second.left_behind == (WaitingCall("waits", 3, "c1", "gw-2"),)
    assert len(second) == 0
    assert notes_in(path, BOOT) == ()


def test_notes_of_another_boot_are_not_believed(path: Path) -> None:
    """The kernel may have lost the last that was written."""
    WaitingCalls(path, BOOT).add(run("waits"))

    assert WaitingCalls(path, "another").left_behind == ()


@pytest.mark.parametrize("data", [b"", b"x" * 10, b"\xff" * SLOT * 3, BOOT.encode()])
def test_a_file_that_is_none_says_nothing(path: Path, data: bytes) -> None:
    """Whatever is found there, the agent starts."""
    path.write_bytes(data)

    assert WaitingCalls(path, BOOT).left_behind == ()


def test_a_note_that_is_garbage_is_passed(path: Path) -> None:
    """The others are read."""
    notes = WaitingCalls(path, BOOT)
    notes.add(run("first"))
    notes.add(run("second"))
    notes.close()
    data = bytearray(path.read_bytes())
    data[SLOT + 1] = 0xC1
    path.write_bytes(data)

    assert [note.call_id for note in notes_in(path, BOOT)] == ["second"]


def test_no_more_is_noted_than_there_is_room_for(path: Path) -> None:
    """A call without a note counts as started, as if there were no notes."""
    notes = WaitingCalls(path, BOOT)
    places = [notes.add(run(f"c{number}")) for number in range(SLOTS + 1)]

    assert places[-1] == NO_NOTE
    assert len(set(places)) == SLOTS + 1
    assert notes.add(run("c" * SLOT)) == NO_NOTE
    notes.remove(places[0])
    assert notes.add(run("again")) == places[0]


@examples(50)
@given(st.lists(st.integers(0, 9), max_size=60))
def test_what_is_noted_is_what_was_not_taken_back(tmp_path_factory: pytest.TempPathFactory, moves: list[int]) -> None:
    """In any order of notes and of taking back."""
    path = tmp_path_factory.mktemp("notes") / "waiting"
    notes, held = WaitingCalls(path, BOOT), dict[str, int]()
    for number, move in enumerate(moves):
        if move < 6:
            held[f"c{number}"] = notes.add(run(f"c{number}"))
        elif held:
            notes.remove(held.pop(sorted(held)[move % len(held)]))

    assert {note.call_id for note in notes_in(path, BOOT)} == set(held)
    assert len(notes) == len(held)


def test_a_killed_process_leaves_its_notes(path: Path) -> None:
    """No flush, no close: kill -9 right after the note."""
    code = (
        "import sys, signal, os; from pathlib import Path;"
        "from pilotlight_runtime.calls.waiting_calls import WaitingCalls; from tests.builders.calls import run;"
        "notes = WaitingCalls(Path(sys.argv[1]), sys.argv[2]); notes.add(run('waits'));"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(path), BOOT], cwd=Path(__file__).parents[3], check=False)

    assert ended.returncode == -signal.SIGKILL
    assert [note.call_id for note in notes_in(path, BOOT)] == ["waits"]
    assert path.stat().st_size == SLOT * (SLOTS + 1)
