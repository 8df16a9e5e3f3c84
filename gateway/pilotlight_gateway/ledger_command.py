"""`pilotlight ledger verify`: audits the ledger in its database, beside the running platform."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import msgspec

from pilotlight_core.host.config import BadSetting, parse
from pilotlight_core.model.price_book import load_prices
from pilotlight_core.model.units import NS_PER_S
from pilotlight_gateway.ledger.ledger_entries import day_of
from pilotlight_gateway.ledger.ledger_errors import LedgerRefused
from pilotlight_gateway.ledger.ledger_store import KEPT_SECONDS, Ledger
from pilotlight_gateway.ledger.ledger_verification import Verification, verify
from pilotlight_gateway.settings import DutyProcessSettings

DAYS_BY_DEFAULT = 31


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="pilotlight ledger verify", description="Recompute the ledger's sums.")
    parser.add_argument("--from", dest="first", type=date.fromisoformat, help="first day, 2026-11-01")
    parser.add_argument("--to", dest="until", type=date.fromisoformat, help="the day after the last")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options, rest = parser.parse_known_args(arguments)
    try:
        settings = parse(DutyProcessSettings, "pilotlight ledger verify", rest, os.environ)
        first, until = days_of(options.first, options.until, time.time())
        if not settings.ledger_url and not settings.ledger_path.exists():
            raise LedgerRefused(f"there is no ledger in {settings.ledger_path}: --ledger-url or --state-dir says where")
        ledger = Ledger(settings.database_url, load_prices())
    except (BadSetting, LedgerRefused) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    try:
        found = verify(ledger, first, until)
    finally:
        ledger.close()
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n" if options.json else as_text(found))
    return 0 if found.discrepancy is None else 1


def days_of(first: date | None, until: date | None, at: float) -> tuple[str, str]:
    """The days that are asked for, by default the last `DAYS_BY_DEFAULT`, without those whose lines may be pruned."""
    end = until or datetime.fromtimestamp(at, UTC).date() + timedelta(days=1)
    begin = first or end - timedelta(days=DAYS_BY_DEFAULT)
    kept = date.fromisoformat(day_of(int(at - KEPT_SECONDS) * NS_PER_S)) + timedelta(days=1)
    return max(begin, kept).isoformat(), end.isoformat()


def as_text(found: Verification) -> str:
    """What was compared, and what does not add up."""
    rows = [f"{found.lines} lines of the days from {found.first} to before {found.until}"]
    rows += [f"{name:<10} {count} agree" for name, count in found.checks.items()]
    if (wrong := found.discrepancy) is not None:
        rows.append(f"{wrong.check:<10} differ: {wrong.where}: expected {wrong.expected}, found {wrong.found}")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.exit(main())
