"""Prepaid credits as they are granted, ended and shown."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime

import msgspec

from pilotlight_core.model.api.budget_api import nano_usd, usd_text
from pilotlight_core.model.api.credit_api import BalanceLine, CreditList, CreditRequest, GrantInfo
from pilotlight_core.model.errors import BadInput, Conflict, NotFound
from pilotlight_core.model.ids import token
from pilotlight_core.model.money.credits import MOST_GRANTS, CreditGrant, CreditsRecord, draw
from pilotlight_gateway.tenancy.registry_port import RegistryPort

HISTORY_AT_MOST = 1_000


async def grant_credit(registry: RegistryPort, tenant: str, asked: CreditRequest, at: float) -> CreditGrant:
    """Give a tenant credit that may be spent from the UTC day of the unix second `at` on.

    Raises:
        BadInput: names the field. Conflict: it has too many grants.
    """
    today = day_at(at)
    if asked.ends is not None and (not _is_day(asked.ends) or asked.ends <= today):
        raise BadInput(f"ends: expected a day after {today}.", field="ends")
    if not (amount := nano_usd(asked.usd)):
        raise BadInput("usd: expected more than nothing.", field="usd")
    grant = CreditGrant(
        id=f"grant_{token(8)}", amount=amount, begins=today, ends=asked.ends or "", priority=asked.priority,
        note=asked.note,
    )  # fmt: skip

    def changed(before: CreditsRecord | None) -> CreditsRecord:
        had = before.grants if before is not None else ()
        if len(had) >= MOST_GRANTS:
            raise Conflict(f"{tenant} has had {MOST_GRANTS} grants already.")
        return CreditsRecord(tenant=tenant, grants=(*had, grant))

    await registry.change_credits(tenant, changed)
    return grant


async def end_credit(registry: RegistryPort, tenant: str, grant: str, at: float) -> None:
    """End a grant today: what is left of it lapses, and its history stays.

    Raises:
        NotFound: there is none.
    """
    today = day_at(at)

    def changed(before: CreditsRecord | None) -> CreditsRecord:
        had = before.grants if before is not None else ()
        if before is None or all(one.id != grant for one in had):
            raise NotFound(f"{tenant} has no grant {grant[:100]!r}.")
        ended = tuple(
            msgspec.structs.replace(one, ends=min(one.ends or today, today)) if one.id == grant else one for one in had
        )
        return msgspec.structs.replace(before, grants=ended)

    await registry.change_credits(tenant, changed)


def credit_list(record: CreditsRecord | None, spent: Iterable[tuple[str, int]], at: float) -> CreditList:
    """A tenant's credit at the unix second `at`; `spent` has what each UTC day cost since its first grant."""
    grants = record.grants if record is not None else ()
    account = draw(grants, spent, day_at(at))
    return CreditList(
        balance_usd=usd_text(account.balance),
        owed_usd=usd_text(account.owed),
        grants=tuple(
            GrantInfo(
                id=one.id, usd=usd_text(one.amount), left_usd=usd_text(account.left.get(one.id, one.amount)),
                begins=one.begins, ends=one.ends or None, priority=one.priority, note=one.note,
            )
            for one in grants
        ),
        history=tuple(
            BalanceLine(
                day=line.day, change=line.change, grant=line.grant, usd=usd_text(line.amount),
                balance_usd=usd_text(line.balance),
            )
            for line in account.lines[-HISTORY_AT_MOST:]
        ),
    )  # fmt: skip


def day_at(at: float) -> str:
    """The UTC day of a unix second."""
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
