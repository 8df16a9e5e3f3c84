"""The benchmark of a simulated day, in small."""

from __future__ import annotations

import json
import sys

import pytest

from benchmarks import simulate


def test_a_short_run_says_how_long_it_took(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """And how much memory."""
    monkeypatch.setattr(sys, "argv", ["simulate", "--plain", "--quick", "--functions", "1"])
    simulate.main()
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])["figures"]
    assert figures["calls"] > 0
    assert figures["cpu_s"] > 0
    assert figures["wall_s"] > 0
    assert figures["rss_mb"] > 0
