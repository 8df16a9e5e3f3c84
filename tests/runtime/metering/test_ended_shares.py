"""The notes of ended calls, and what the next agent finds of them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pilotlight_runtime.metering import ended_shares
from pilotlight_runtime.metering.ended_shares import FIRST_BYTES, EndedShares, shares_in
from tests.runtime.metering.ended import ended_share

BOOT = "6f0f4cbe-5f34-4a0c-9b07-0f4e9c3ce8a1"


def calls_in(folder: Path, boot: str = BOOT) -> set[str]:
    """The calls of which there are notes."""
    return {note.share.call_id for note in shares_in(folder, boot)}


def test_notes_of_two_windows_are_kept(tmp_path: Path) -> None:
    """Those before a checkpoint go with the next one, when its records are on disk."""
    notes = EndedShares(tmp_path, BOOT)
    notes.add(ended_share("first", ns=1))
    notes.begin_window()
    notes.add(ended_share("second", ns=2))
    assert calls_in(tmp_path) == {"first", "second"}

    notes.begin_window()
    notes.add(ended_share("third", ns=3))

    assert calls_in(tmp_path) == {"second", "third"}
    assert ended_share("third", ns=3) in shares_in(tmp_path, BOOT)


def test_an_agent_begins_without_notes(tmp_path: Path) -> None:
    """What the one before left was read before."""
    EndedShares(tmp_path, BOOT).add(ended_share("old", ns=1))

    EndedShares(tmp_path, BOOT)

    assert calls_in(tmp_path) == set()


def test_notes_of_another_boot_are_not_believed(tmp_path: Path) -> None:
    """Its clock is another, and the kernel may have lost some."""
    EndedShares(tmp_path, BOOT).add(ended_share("old", ns=1))

    assert calls_in(tmp_path, "another") == set()


@pytest.mark.parametrize("data", [b"", b"x" * 10, b"\xff" * 4096, BOOT.encode()])
def test_a_file_that_is_none_says_nothing(tmp_path: Path, data: bytes) -> None:
    """Whatever is found there, the agent starts."""
    (tmp_path / "0").write_bytes(data)

    assert calls_in(tmp_path) == set()
    assert EndedShares(tmp_path, BOOT).missed == 0


def test_a_torn_note_ends_the_file(tmp_path: Path) -> None:
    """Those before it count."""
    notes = EndedShares(tmp_path, BOOT)
    notes.add(ended_share("whole", ns=1))
    notes.add(ended_share("torn", ns=1))
    data = bytearray((tmp_path / "0").read_bytes())
    data[len(data.rstrip(b"\0")) - 3] ^= 0xFF
    (tmp_path / "0").write_bytes(data)

    assert calls_in(tmp_path) == {"whole"}


def test_files_grow_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it calls are counted that a kill would lose; after the next checkpoint there is room again."""
    monkeypatch.setattr(ended_shares, "MOST_BYTES", 2 * FIRST_BYTES)
    notes, added = EndedShares(tmp_path, BOOT), 0
    while not notes.missed:
        notes.add(ended_share(f"call-{added}", ns=1))
        added += 1

    assert len(calls_in(tmp_path)) == added - 1
    assert FIRST_BYTES < (tmp_path / "0").stat().st_size == 2 * FIRST_BYTES
    notes.begin_window()
    notes.add(ended_share("later", ns=1))
    assert "later" in calls_in(tmp_path)


def test_notes_outlive_a_kill(tmp_path: Path) -> None:
    """Of a real process."""
    text = f"""
import os, signal
from pathlib import Path
from pilotlight_runtime.metering.ended_shares import EndedShares
from tests.runtime.metering.ended import ended_share
EndedShares(Path({str(tmp_path)!r}), {BOOT!r}).add(ended_share("told", ns=7))
os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", text], check=False, timeout=60)

    assert killed.returncode == -signal.SIGKILL
    assert calls_in(tmp_path) == {"told"}
