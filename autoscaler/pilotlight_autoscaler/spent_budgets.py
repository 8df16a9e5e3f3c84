"""Which tenants have no money left, as the homes of their limits note it: nothing of theirs is kept without calls.

A budget that is removed counts no more from then on, whatever a home has noted of it last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import TracebackType
from typing import Any

import msgspec
import structlog

from pilotlight_core.bus import Bus, KvEntry
from pilotlight_core.host.registry import Registry
from pilotlight_core.model.money.budgets import HomeTranches
from pilotlight_core.model.spec import VersionRecord
from pilotlight_core.model.subjects import BUDGET_BUCKET

HOME = "home."
SPENT = "the budget {name} of {tenant} is used up, so none is kept without calls"

log = structlog.get_logger(__name__)
_decoder = msgspec.msgpack.Decoder(HomeTranches)

ToldMoney = Callable[[str, Collection[str], Collection[str]], None]
"""The tenant, the budgets of which nothing is left, and those of which something is again."""


def _silent(_tenant: str, _spent: Collection[str], _free: Collection[str]) -> None: ...


class SpentBudgets:
    """Follows the records of homes, and those of budgets; as a context manager, as long as its block lasts."""

    def __init__(
        self, bus: Bus, registry: Registry, changed: Callable[[str], None] = lambda _: None, told: ToldMoney = _silent
    ) -> None:
        """`changed` is called with each tenant that has money no more, or again, `told` with the budgets concerned."""
        self._told = told
        self._registry = registry
        self._mirror = bus.mirror(BUDGET_BUCKET, HOME)
        self._mirror.on_change.append(self._noted)
        self._changed = changed
        self._spent: dict[str, dict[str, str]] = {}
        """By tenant, the budgets without money, each with its function (`tenant:app.function`; "": all)."""

    async def __aenter__(self) -> SpentBudgets:
        await self._mirror.__aenter__()
        self._registry.on_change.append(self._set)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._registry.on_change.remove(self._set)
        await self._mirror.__aexit__(kind, error, trace)

    def unfunded(self, version: VersionRecord) -> str:
        """The budget of a version's owner that is used up, in words; "": there is money."""
        spent = self._spent.get(version.tenant)
        if spent is None:
            return ""
        record, own = self._registry.budgets(version.tenant), f"{version.tenant}:{version.app}.{version.function}"
        for budget in record.budgets if record is not None else ():
            if spent.get(budget.id) in ("", own):
                return SPENT.format(name=budget.id, tenant=version.tenant)
        return ""

    def _set(self, key: str, _: Any) -> None:
        kind, _dot, tenant = key.partition(".")
        if kind == "budget" and tenant in self._spent:
            self._changed(tenant)

    def _noted(self, key: str, entry: KvEntry | None) -> None:
        tenant = key.removeprefix(HOME)
        spent = spent_of(entry.value) if entry is not None else {}
        if spent == self._spent.get(tenant, {}):
            return
        before = self._spent.pop(tenant, {})
        self._told(tenant, spent.keys() - before.keys(), before.keys() - spent.keys())
        if spent:
            self._spent[tenant] = spent
        log.info("a tenant's money has changed", tenant=tenant, used_up=sorted(spent))
        self._changed(tenant)


def spent_of(data: bytes) -> dict[str, str]:
    """The budgets of which a record says that nothing is left, each with its function ("": all)."""
    try:
        tranches = _decoder.decode(data).tranches
    except msgspec.DecodeError:  # of a later release
        return {}
    # Nobody's key is used while nobody calls.
    return {name: one.function for name, one in tranches.items() if one.is_exhausted and not one.key}
