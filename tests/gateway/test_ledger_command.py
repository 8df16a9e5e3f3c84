"""`pilotlight ledger verify`, as a program."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import msgspec
import pytest

from pilotlight_core.model.price_book import load_prices
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_verification import Discrepancy, Verification
from pilotlight_gateway.ledger_command import as_text, days_of, main
from tests.gateway.ledger.metering import MIDNIGHT, SECOND, delivered, event


def test_a_ledger_that_adds_up_is_a_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Below the folder of the machine, with what was compared."""
    Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}", load_prices()).close()

    code = main(["--json", f"--state-dir={tmp_path}"])

    assert (code, msgspec.json.decode(capsys.readouterr().out)["discrepancy"]) == (0, None)
    assert main([f"--state-dir={tmp_path}"]) == 0
    assert "receipts   0 agree" in capsys.readouterr().out


def test_a_ledger_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """None is made."""
    assert main([f"--state-dir={tmp_path}"]) == 2
    assert "there is no ledger" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_what_differs_is_said() -> None:
    """With where, and both figures."""
    wrong = Discrepancy(check="days", where="2026-09-22 acme", expected=5, found=6)
    told = as_text(Verification(first="a", until="b", lines=3, checks={"devices": 1}, discrepancy=wrong))

    assert told.splitlines()[1:] == ["devices    1 agree", "days       differ: 2026-09-22 acme: expected 5, found 6"]


def test_days_whose_lines_may_be_pruned_are_left_out() -> None:
    """A hundred days are kept; by default it is the last month."""
    assert days_of(None, None, MIDNIGHT) == ("2026-08-23", "2026-09-23")
    assert days_of(date(2025, 1, 1), date(2026, 9, 1), MIDNIGHT) == ("2026-06-15", "2026-09-01")


def test_a_difference_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, with the first."""
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}", load_prices())
    twice = [event(number, 0, SECOND, id=f"i{number}.s0.1", ended_at=MIDNIGHT + 1) for number in (1, 2)]
    ledger.fold("USAGE", 1, delivered(twice))
    ledger.close()
    first, until = "2026-09-22", "2026-09-23"

    code = main([f"--state-dir={tmp_path}", f"--from={first}", f"--to={until}"])

    assert (code, "devices    differ: device d0 of node n1" in capsys.readouterr().out) == (1, True)
