"""The oracle of usage can fail: a ledger that is wrong in one way is told apart from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from pilotlight_core.model.messages.usage import CallShare, UsageEvent
from pilotlight_core.model.messages.usage_facts import Fault
from pilotlight_core.model.price_book import load_prices
from pilotlight_gateway.ledger import ledger_store
from pilotlight_gateway.ledger.ledger_entries import LedgerRows, entries_of
from pilotlight_gateway.ledger.ledger_store import Ledger
from tests.gateway.ledger.test_usage_oracle import LedgerMachine

ENOUGH = 100
"""Histories within which a mutant must be caught."""
Mutant = Callable[[pytest.MonkeyPatch], None]


def misread(change: Callable[[CallShare], CallShare]) -> Mutant:
    """The ledger takes another share for each that it is told."""

    def of_others(events: Iterable[UsageEvent], *others: Any) -> LedgerRows:
        return entries_of(
            [msgspec.structs.replace(event, shares=tuple(map(change, event.shares))) for event in events], *others
        )

    return lambda patch: patch.setattr(ledger_store, "entries_of", of_others)


def lost_stays_billed(share: CallShare) -> CallShare:
    """What a lost start was billed in earlier intervals is not given back."""
    return msgspec.structs.replace(share, earlier=0) if share.fault is Fault.PLATFORM else share


def kept_is_free(share: CallShare) -> CallShare:
    """What a stream had kept is the operator's too."""
    is_kept = share.moved and share.fault is Fault.NONE
    return msgspec.structs.replace(share, fault=Fault.PLATFORM) if is_kept else share


def repeated_is_billed(share: CallShare) -> CallShare:
    """A stream pays once more for what it repeats elsewhere."""
    return msgspec.structs.replace(share, fault=Fault.NONE) if share.ended == "repeated" else share


def resumed_pays_least(share: CallShare) -> CallShare:
    """The least that a start is billed for is billed for the rest of a stream too."""
    return msgspec.structs.replace(share, resumed=False)


def raised_is_free(share: CallShare) -> CallShare:
    """A start that raised, and is run again, is the operator's."""
    return msgspec.structs.replace(share, fault=Fault.PLATFORM) if share.ended == "raised" else share


def unknown_is_dropped(patch: pytest.MonkeyPatch) -> None:
    """What cannot be read is not kept."""
    patch.setattr(ledger_store, "keep_unread", lambda _connection, _found: [])


def unknown_is_kept_for_ever(patch: pytest.MonkeyPatch) -> None:
    """What was read at last is read again."""
    patch.setattr(ledger_store, "drop_unread", lambda _connection, _ids: None)


MUTANTS: dict[str, Mutant] = {
    change.__name__: misread(change)
    for change in (lost_stays_billed, kept_is_free, repeated_is_billed, resumed_pays_least, raised_is_free)
} | {mutant.__name__: mutant for mutant in (unknown_is_dropped, unknown_is_kept_for_ever)}


class MemoryMachine(LedgerMachine):
    """Of ledgers in memory, where each start is billed for an hour."""

    least_ms = 3_600_000

    def new_ledger(self) -> Ledger:
        return Ledger("sqlite://", load_prices())


@pytest.mark.variant
@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
@pytest.mark.timeout(300)
def test_a_wrong_ledger_is_told_apart(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of what it gets wrong alone."""
    mutant(monkeypatch)
    until_found = settings(
        max_examples=ENOUGH, stateful_step_count=25, deadline=None, phases=[Phase.generate], derandomize=True,
        database=None, report_multiple_bugs=False, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    with pytest.raises(AssertionError):
        run_state_machine_as_test(MemoryMachine, settings=until_found)
