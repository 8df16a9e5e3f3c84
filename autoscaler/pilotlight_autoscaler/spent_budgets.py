"""Which tenants have no money left, as the homes of their limits note it: nothing of theirs is kept without calls."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

import msgspec
import structlog

from pilotlight_core.bus import Bus, KvEntry
from pilotlight_core.model.money.budgets import HomeTranches
from pilotlight_core.model.spec import VersionRecord
from pilotlight_core.model.subjects import BUDGET_BUCKET

HOME = "home."
SPENT = "the budget {name} of {tenant} is used up, so none is kept without calls"

log = structlog.get_logger(__name__)
_decoder = msgspec.msgpack.Decoder(HomeTranches)


class SpentBudgets:
    """Follows the records of homes; as a context manager, as long as its block lasts."""

    def __init__(self, bus: Bus, changed: Callable[[str], None] = lambda _: None) -> None:
        """`changed` is called with each tenant that has money no more, or again."""
        self._mirror = bus.mirror(BUDGET_BUCKET, HOME)
        self._mirror.on_change.append(self._noted)
        self._changed = changed
        self._spent: dict[str, dict[str, str]] = {}
        """By tenant, the functions (`tenant:app.function`; "": all) without money, each with the budget."""

    async def __aenter__(self) -> SpentBudgets:
        await self._mirror.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._mirror.__aexit__(kind, error, trace)

    def unfunded(self, version: VersionRecord) -> str:
        """The budget of a version's owner that is used up, in words; "": there is money."""
        spent = self._spent.get(version.tenant)
        if spent is None:
            return ""
        name = spent.get("") or spent.get(f"{version.tenant}:{version.app}.{version.function}")
        return SPENT.format(name=name, tenant=version.tenant) if name else ""

    def _noted(self, key: str, entry: KvEntry | None) -> None:
        tenant = key.removeprefix(HOME)
        spent = spent_of(entry.value) if entry is not None else {}
        if spent == self._spent.get(tenant, {}):
            return
        self._spent.pop(tenant, None)
        if spent:
            self._spent[tenant] = spent
        log.info("a tenant's money has changed", tenant=tenant, used_up=sorted(spent.values()))
        self._changed(tenant)


def spent_of(data: bytes) -> dict[str, str]:
    """The functions ("": all) for which a record says that nothing is left, each with the budget."""
    try:
        tranches = _decoder.decode(data).tranches
    except msgspec.DecodeError:  # of a later release
        return {}
    # Nobody's key is used while nobody calls.
    return {one.function: name for name, one in tranches.items() if one.is_exhausted and not one.key}
