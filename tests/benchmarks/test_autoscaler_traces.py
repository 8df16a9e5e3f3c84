"""The benchmark of keep-alive policies, on a record of our own."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

from benchmarks import autoscaler_traces


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """Functions that are called each half hour, in bursts, or rarely."""
    draw, rows = random.Random(5), ["function,minute,count"]
    for number in range(6):
        rows += [f"timer{number},{minute},1" for minute in range(number, 2_880, 30)]
        at = draw.randint(0, 100)
        while at < 2_880:
            rows += [f"burst{number},{min(2_879, at + draw.randint(0, 20))},2" for _ in range(8)]
            at += draw.randint(60, 400)
        rows += [f"rare{number},{draw.randint(0, 2_879)},1" for _ in range(4)]
    path = tmp_path / "mixed.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_ours_is_compared_on_a_record(
    record: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the figures of its file's name."""
    monkeypatch.setattr(sys, "argv", ["autoscaler_traces", "--trace", str(record)])
    autoscaler_traces.main()
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])["figures"]
    assert figures["mixed.cold_gain_ttl"] > 0.0
    assert figures["mixed.idle_gain_ttl"] > 0.0
    assert figures["mixed.cold_gain_hist"] > 0.0
    assert figures["mixed.worst_loss"] <= 0.0
    assert figures["mixed.oracle_gap"] >= 1.0


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--set", "azure100"], "must name the folder"), (["--trace", "/no/such.csv"], "No such file")],
)
def test_what_is_missing_is_said(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And nothing is measured."""
    monkeypatch.setattr(sys, "argv", ["autoscaler_traces", *words])
    monkeypatch.delenv("PILOTLIGHT_TRACES", raising=False)
    with pytest.raises(SystemExit):
        autoscaler_traces.main()
    assert said in capsys.readouterr().err
