"""`pilotlight record`: differences of what the ledger counts, as a trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight.cli.commands.operator import traffic_record as record
from pilotlight.cli.commands.operator.traffic_record import counted_since, counts_of
from tests.sdk.cli.shell import invoke
from tests.sdk.scripted import ScriptedPlatform, answer


def usage(*lines: tuple[str, int]) -> dict[str, object]:
    """What the platform says that functions of `shop` were called so far."""
    told = [{"day": "2026-11-24", "app": "shop", "function": name, "calls": calls} for name, calls in lines]
    return {"lines": told, "total": {}}


def test_each_minute_has_the_calls_that_are_new(
    platform: ScriptedPlatform, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What was counted before the beginning is none; the file is what simulate reads."""
    monkeypatch.setattr(record, "MINUTE_S", 0.0)
    counts = (usage(("a", 7)), usage(("a", 9), ("b", 1)), usage(("a", 9), ("b", 4)))
    platform.will("GET", "/v1/usage", *(answer(each) for each in counts))
    out = tmp_path / "trace.csv"

    done = invoke("record", "--minutes", "2", "--out", str(out))

    assert done.exit_code == 0, done.stderr
    assert out.read_text() == "function,minute,count\nshop.a,0,2\nshop.b,0,1\nshop.b,1,3\n"


def test_a_file_that_cannot_be_written_is_named(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """Before anything is asked."""
    done = invoke("record", "--minutes", "1", "--out", str(tmp_path / "no" / "such.csv"))
    assert done.exit_code != 0
    assert "cannot be written" in done.stderr


def test_days_are_apart() -> None:
    """The first calls of a day are all new; a count that fell, as of a ledger that was restored, is none."""
    lines = [
        {"day": "2", "app": "s", "function": "f", "calls": 3},
        {"day": "1", "app": "s", "function": "f", "calls": 5},
    ]
    now = counts_of(lines)
    assert counted_since({("1", "s.f"): 4}, now) == {"s.f": 4}
    assert counted_since({("1", "s.f"): 9, ("2", "s.f"): 3}, now) == {}
