"""The append log of usage: what was written is there after any crash, and is handed in."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory

import pytest

from pilotlight_core.model.messages.usage import LeaseState, UsageEvent
from pilotlight_runtime.metering import usage_log
from pilotlight_runtime.metering.usage_log import UsageLog, UsageRecord

BOOT = "boot-1"


def record(number: int, device: str = "cpu") -> UsageRecord:
    slice_id = f"{device}-0"
    event = UsageEvent(
        id=f"i.{slice_id}.{number}",
        node="n",
        device=device,
        slice=slice_id,
        ppm=1_000_000,
        price="cpu",
        state=LeaseState.FREE,
        t0=number * 10,
        t1=number * 10 + 10,
        ended_at=0.0,
    )
    return UsageRecord(id=f"i.{number}", tenant="acme", events=(event,))


@contextmanager
def opened(folder: Path, boot: str = BOOT) -> Iterator[UsageLog]:
    log = UsageLog(folder, boot)
    try:
        yield log
    finally:
        log.close()


def ids(log: UsageLog) -> list[str]:
    return [item.record.id for item in log.pending(100)]


def test_it_knows_how_much_the_stream_has_not_taken(tmp_path: Path) -> None:
    """In bytes, over restarts, and over a new file for the one that was taken whole."""
    with opened(tmp_path) as log:
        assert log.unacknowledged_bytes == 0
        log.append([record(1), record(2)])
        first, second = (item.end for item in log.pending(2))
        assert log.unacknowledged_bytes == second
        log.acknowledge(first)
        assert log.unacknowledged_bytes == second - first

    with opened(tmp_path) as again:
        assert again.unacknowledged_bytes == second - first
        again.acknowledge(second)
        assert again.unacknowledged_bytes == 0


def test_records_wait_until_they_are_acknowledged(tmp_path: Path) -> None:
    """Over a restart too."""
    with opened(tmp_path) as log:
        log.append([record(1), record(2)])
        log.append([record(3)])
        log.acknowledge(log.pending(1)[0].end)

    with opened(tmp_path) as again:
        assert ids(again) == ["i.2", "i.3"]
        assert again.pending(1)[0].record == record(2)
        assert again.cut_bytes == 0


@pytest.mark.parametrize("torn", [1, 5, 9, 30])
def test_a_torn_tail_is_cut(tmp_path: Path, torn: int) -> None:
    """Whatever a crash left behind the last whole record; later records follow on cleanly."""
    with opened(tmp_path) as log:
        log.append([record(1)])
        whole = log.pending(1)[0].end
        log.append([record(2)])
    os.truncate(next(tmp_path.glob("*.log")), whole + torn)

    with opened(tmp_path) as again:
        again.append([record(3)])

        assert again.cut_bytes == torn
        assert ids(again) == ["i.1", "i.3"]


def test_a_damaged_record_ends_the_log_there(tmp_path: Path) -> None:
    """A checksum guards each record."""
    with opened(tmp_path) as log:
        log.append([record(1)])
        log.append([record(2)])
    path = next(tmp_path.glob("*.log"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 0xFF
    path.write_bytes(data)

    with opened(tmp_path) as again:
        assert ids(again) == ["i.1"]


def test_what_was_appended_together_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    """Else one part of a device would be metered further than another."""
    with opened(tmp_path) as log:
        log.append([record(1)])
        log.append([record(2), record(3), record(4)])
        third = log.pending(3)[2].end
    os.truncate(next(tmp_path.glob("*.log")), third + 1)

    with opened(tmp_path) as again:
        assert ids(again) == ["i.1"]
        assert again.metered == {"cpu": 20}


def test_it_knows_how_far_devices_are_metered(tmp_path: Path) -> None:
    """So that the next agent goes on from there; another boot has another clock."""
    with opened(tmp_path) as log:
        log.append([record(1), record(2), record(5, "gpu")])
        log.acknowledge(log.pending(3)[0].end)

    with opened(tmp_path) as again:
        assert again.metered == {"cpu": 30, "gpu": 60}
    with opened(tmp_path, "boot-2") as other:
        assert other.metered == {}


def test_a_large_file_is_left_behind_when_it_was_taken(tmp_path: Path) -> None:
    """Nothing grows for ever, and nothing is forgotten by it."""
    big = UsageRecord(id="big", tenant="acme", events=record(1).events * (usage_log.ROTATE_BYTES // 150))
    with opened(tmp_path) as log:
        log.append([big])
        log.acknowledge(log.pending(1)[0].end)
        log.append([record(7)])

    assert [path.name for path in tmp_path.glob("*.log")] == ["00000002.log"]
    with opened(tmp_path) as again:
        assert ids(again) == ["i.7"]
        assert again.metered["cpu"] == 80


def test_a_lost_mark_repeats_rather_than_forgets(tmp_path: Path) -> None:
    """Repeated records are known to the stream by their ids."""
    with opened(tmp_path) as log:
        log.append([record(1)])
        log.acknowledge(log.pending(1)[0].end)
    (tmp_path / "acknowledged").write_bytes(b"{torn")

    with opened(tmp_path) as again:
        assert ids(again) == ["i.1"]


def test_a_file_that_was_taken_whole_is_removed_at_the_next_start(tmp_path: Path) -> None:
    """The crash came between the new mark and the removal."""
    with opened(tmp_path):
        (tmp_path / "00000000.log").write_bytes(b"old")

    with opened(tmp_path):
        assert [path.name for path in tmp_path.glob("*.log")] == ["00000001.log"]


def test_a_full_disk_leaves_no_half_record(tmp_path: Path) -> None:
    """What could not be written does not count, and what follows is whole."""
    with opened(tmp_path) as log:
        log.append([record(1)])
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (log.pending(1)[0].end + 20, hard))
            with pytest.raises(OSError, match="File too large"):
                log.append([record(2)])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, old)

        log.append([record(3)])
        assert ids(log) == ["i.1", "i.3"]


def test_a_device_is_metered_up_to_its_last_event_in_whatever_order_they_are_written(tmp_path: Path) -> None:
    """Records are by tenant: the operator's may hold what came later, and stand first."""
    with opened(tmp_path) as log:
        log.append([record(2), record(1)])

        assert log.metered == {"cpu": 30}
    with opened(tmp_path) as again:
        assert again.metered == {"cpu": 30}


def test_what_is_in_memory_is_what_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the stream keeps up, when it falls behind, when it has caught up again, and in a new file."""
    monkeypatch.setattr(usage_log, "ROTATE_BYTES", 6_000)
    monkeypatch.setattr(usage_log, "FRESH_BYTES", 2_000)
    with opened(tmp_path) as log:
        for number in range(90):
            log.append([record(3 * number + part) for part in range(3)])
            for limit in (1, 4, 1_000):
                with opened_copy(log, tmp_path) as stored:
                    assert log.pending(limit) == stored.pending(limit)
            behind = 20 < number < 40
            if not behind and (found := log.pending(1_000 if number % 7 == 0 else 4)):
                log.acknowledge(found[-1].end)
        assert len(list(tmp_path.glob("*.log"))) == 1
        assert not (tmp_path / "00000001.log").exists()


@contextmanager
def opened_copy(log: UsageLog, folder: Path) -> Iterator[UsageLog]:
    """A log that knows only what is on the disk."""
    assert log.unacknowledged_bytes >= 0
    with TemporaryDirectory() as other:
        for path in folder.iterdir():
            copy(path, other)
        with opened(Path(other)) as stored:
            yield stored
