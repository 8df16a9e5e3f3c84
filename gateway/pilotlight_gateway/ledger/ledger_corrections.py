"""Corrects what was billed before it was known whose it is: by new lines, which name those that they correct.

A start of a call is billed each second. If the platform then ends its container, the operator pays for all of it, or
of a stream for what it had not kept: what its tenant was billed already is given back on the day of the end, at the
rate that it was billed at, the last first; never more than that, whatever a node says. What is folded later is given
back then (`pending_reversals`).

A receipt has all starts of a call at one price together, by day. Where prices changed meanwhile, those are given back
first that held last before the end (`_held_at`). Two starts of one call on like slices, of which the first ends late,
may so be told apart wrongly, by the nanoseconds of one at the price of the other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa

from pilotlight_core.model.devices import CORE_PRICE, MEMORY_PRICE
from pilotlight_core.model.messages.usage import UsageEvent
from pilotlight_core.model.price_book import PriceBook
from pilotlight_core.model.units import NS_PER_S
from pilotlight_gateway.ledger.attribution import OPERATOR, POLICY
from pilotlight_gateway.ledger.ledger_entries import (
    LedgerRows,
    Part,
    ReceiptTerms,
    Reversal,
    ended_ns,
    hour_sum,
    rates_at,
)
from pilotlight_gateway.ledger.ledger_tables import call_receipt, correction_line, receipt_terms

PLATFORM_FAULT = "platform_fault"
"""Why: the platform ended the call."""
OF_DAY = sa.func.coalesce(receipt_terms.c.of_day, "")
Billed = tuple[ReceiptTerms, int]


class Corrections(NamedTuple):
    """What corrections change in receipts and sums, and what of them nothing was found for yet."""

    entries: LedgerRows
    left: list[tuple[Reversal, int]]
    """Nanoseconds of each."""


def correct(connection: sa.Connection, reversals: Iterable[Reversal], book: PriceBook) -> Corrections:
    """Write the lines of corrections; `book` has the prices at which they were billed."""
    done, lines = Corrections(LedgerRows(), []), list[dict[str, Any]]()
    given, numbers = Counter[tuple[str, ReceiptTerms]](), dict[tuple[str, str], int]()
    for reversal in reversals:
        call, of = reversal.share.call_id, reversal.event.id
        number, left = numbers.get((of, call), reversal.lines), reversal.share.earlier + reversal.rest
        for terms, ns in _given_back(reversal, _billed(connection, reversal, given, book)):
            given[call, _of_any_day(terms)] += ns
            lines.append(_line(reversal, number, terms, ns))
            number, left = number + 1, left - ns
            _move(done.entries, reversal, terms, ns)
        numbers[of, call] = number
        if left:
            done.left.append((reversal._replace(lines=number), left))
    if lines:
        connection.execute(sa.insert(correction_line), lines)
    return done


def _billed(
    connection: sa.Connection, reversal: Reversal, given: Mapping[tuple[str, ReceiptTerms], int], book: PriceBook
) -> Iterator[Billed]:
    """What the receipt has of the call on such a slice and is not given back yet, the last first.

    What was given back before is a line of another day, below 0; `given` is what is, and not written yet.
    """
    of, share = reversal.event, reversal.share
    columns = receipt_terms.c
    query = (
        sa.select(*(columns[name] for name in ReceiptTerms._fields[:-1]), OF_DAY, call_receipt.c.ns)
        .join(call_receipt, call_receipt.c.terms == columns.id)
        .where(
            call_receipt.c.call == share.call_id, columns.tenant == share.tenant,
            columns.version == of.version, columns.price == of.price, columns.ppm == of.ppm,
        )
        .order_by(columns.day.desc(), columns.rate, columns.id)
    )  # fmt: skip
    rows = [(ReceiptTerms(*terms), ns) for *terms, ns in connection.execute(query)]
    left = Counter[ReceiptTerms]()
    for terms, ns in rows:
        left[_of_any_day(terms)] += ns
    left.subtract({terms: given.get((share.call_id, terms), 0) for terms in list(left)})
    if len({_rates(terms) for terms, _ in rows}) > 1:
        rows.sort(key=lambda row: _held_at(row[0], of, book), reverse=True)
    for terms, ns in rows:
        if (part := min(ns, left[_of_any_day(terms)])) > 0:
            left[_of_any_day(terms)] -= part
            yield terms, part


def _rates(terms: ReceiptTerms) -> tuple[int, ...]:
    return terms.rate, terms.discount, terms.core_ppm, terms.core_rate, terms.gib_ppm, terms.gib_rate


def _held_at(terms: ReceiptTerms, of: UsageEvent, book: PriceBook) -> float:
    """The last unix second of their day, up to the end of an interval, at which it had these prices; -1.0: never."""
    end = ended_ns(of) / NS_PER_S
    day = datetime.strptime(terms.of_day or terms.day, "%Y-%m-%d").replace(tzinfo=UTC) + timedelta(days=1)
    limit = min(end, day.timestamp())
    changes = {rate.starts_at for rates in book.dated.values() for rate in rates if 0.0 < rate.starts_at <= end}
    instants = sorted((end, limit, *(math.nextafter(at, 0.0) for at in changes)), reverse=True)
    held = [at for at in instants if rates_at(of, book, terms.tenant, at) == _rates(terms)]
    if in_day := [at for at in held if at <= limit]:
        return in_day[0]
    return math.nextafter(limit, math.inf) if held else -1.0  # an interval over midnight has the prices of its end


def _of_any_day(terms: ReceiptTerms) -> ReceiptTerms:
    return terms._replace(day="", of_day="")


def _given_back(reversal: Reversal, billed: Iterable[Billed]) -> Iterator[Billed]:
    left = reversal.share.earlier
    for terms, ns in billed:
        if part := min(left, ns):
            yield terms, part
        left -= part


def _move(entries: LedgerRows, reversal: Reversal, terms: ReceiptTerms, ns: int) -> None:
    """From the tenant to the operator, on the day of the end."""
    theirs = terms._replace(day=reversal.hour[:10], of_day="")
    ours = theirs._replace(tenant=OPERATOR, key_id="", tags="", discount=0)
    for each, moved in ((theirs, -ns), (ours, ns)):
        number = entries.terms.setdefault(each, each.id)
        entries.calls.append((number, reversal.share.call_id, moved, "", 1, "", "", ""))
        for part in _parts(each):
            hour_sum(entries, reversal.event, part, reversal.hour, each.tenant, each.key_id).ns += moved


def _parts(terms: ReceiptTerms) -> Iterator[Part]:
    yield terms.price, terms.ppm, terms.rate, terms.discount
    if terms.core_ppm:
        yield CORE_PRICE, terms.core_ppm, terms.core_rate, terms.discount
    if terms.gib_ppm:
        yield MEMORY_PRICE, terms.gib_ppm, terms.gib_rate, terms.discount


def _line(reversal: Reversal, number: int, terms: ReceiptTerms, ns: int) -> dict[str, Any]:
    return {
        "id": f"{reversal.event.id}.{reversal.share.call_id}.{number}", "day": reversal.hour[:10],
        "corrects": reversal.event.id, "of_day": terms.of_day or terms.day, "call": reversal.share.call_id,
        "why": PLATFORM_FAULT, "payer": OPERATOR, "tenant": terms.tenant, "terms": terms.id, "ns": ns, "policy": POLICY,
    }  # fmt: skip
