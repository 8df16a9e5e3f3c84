"""Records of pools of nodes, as operators change them, and how they are shown."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator
from typing import Protocol

from msgspec.structs import replace

from pilotlight_core.model.api.pools.pool_api import PoolInfo, PoolMachineInfo
from pilotlight_core.model.api.pools.pool_terms import DisruptionBudget, PoolProvider, PoolTerms
from pilotlight_core.model.errors import BadInput, Conflict, NotFound
from pilotlight_core.model.ids import check_name, token
from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.records.pools import MOST_POOLS, LaunchRecord, PoolRecord, PoolState
from pilotlight_core.model.schedules.schedule_checks import check_schedule
from pilotlight_core.model.spec import Schedule
from pilotlight_core.model.versions.public_keys import public_keys_of
from pilotlight_gateway.tenancy.registry_port import ChangePool
from pilotlight_placement.hardware.gpu_text import read_gpus

LOOKS, LOOK_S = 20, 0.05
"""How often a removal looks whether what was written before it has come here; and how long it is between two looks."""
CLUSTER_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")


class PoolRecords(Protocol):
    """What this reads and changes of the registry."""

    def pools(self) -> Iterator[PoolRecord]: ...
    def launches(self) -> Iterator[LaunchRecord]: ...
    async def pool(self, name: str) -> PoolRecord | None: ...
    async def change_pool(self, name: str, change: ChangePool) -> PoolRecord | None: ...


async def set_pool(registry: PoolRecords, name: str, terms: PoolTerms) -> PoolRecord:
    """Make a pool, or replace what is said of one; it is open then.

    Raises:
        BadInput: names the wrong field. Conflict: there are too many pools.
    """
    check_name(name, "pool")
    check_terms(name, terms)
    known = {record.name: record for record in registry.pools()}
    if name not in known and len(known) >= MOST_POOLS:
        raise Conflict(f"There are {MOST_POOLS} pools, which is the most: remove one first.")
    if terms.fallback and terms.fallback not in known:
        raise BadInput(f"fallback: there is no pool {terms.fallback!r}.", field="fallback")
    behind, chain = terms.fallback, [name]
    while behind in known and behind not in chain:
        chain.append(behind)
        behind = known[behind].terms.fallback
    if behind in chain:
        raise BadInput(f"fallback: expected no circle, not {' -> '.join((*chain, behind))}.", field="fallback")
    before = known.get(name)
    if before is not None and before.terms.provider is not terms.provider and _machines(registry, name):
        raise Conflict(f"The pool {name} has machines of another provider: drain it first, 'pilotlight pool drain'.")
    fresh = token()

    def changed(present: PoolRecord | None) -> PoolRecord:
        return PoolRecord(name=name, id=present.id if present is not None else fresh, terms=terms)

    made = await registry.change_pool(name, changed)
    assert made is not None  # noqa: S101 - it is never removed here
    return made


async def drain_pool(registry: PoolRecords, name: str) -> PoolRecord:
    """Let all nodes of a pool go, as others take their place, and launch none.

    Raises:
        NotFound: there is no such pool.
    """

    def drained(present: PoolRecord | None) -> PoolRecord:
        return replace(_there(name, present), state=PoolState.DRAINING)

    made = await registry.change_pool(name, drained)
    assert made is not None  # noqa: S101 - `drained` removes none
    return made


async def remove_pool(registry: PoolRecords, name: str) -> None:
    """Remove a pool that has no machine any more.

    Raises:
        NotFound: there is no such pool. Conflict: it has machines, which nobody would end.
    """
    record = _there(name, await registry.pool(check_name(name, "pool")))
    if record.is_open and (record.terms.least_nodes or record.terms.most_nodes):
        raise Conflict(f"The pool {name} may launch machines: drain it first, 'pilotlight pool drain {name}'.")
    await _wait_heard(registry, record)
    if machines := _machines(registry, name):
        nodes = ", ".join(each.node for each in machines[:5])
        raise Conflict(f"The pool {name} still has {len(machines)} machines ({nodes}): wait until they are gone.")
    await registry.change_pool(name, lambda _: None)


async def _wait_heard(registry: PoolRecords, record: PoolRecord) -> None:
    """Wait until this gateway has heard of a pool's record as it is on the bus.

    What the controller put on record before the pool was drained is known here then, since both come in one order. Of
    what it puts on record afterwards it finds the pool drained, and takes it back.

    Raises:
        Conflict: it lags behind.
    """
    for _ in range(LOOKS):
        if record in registry.pools():
            return
        await asyncio.sleep(LOOK_S)
    raise Conflict(f"The pool {record.name} was changed a moment ago, and not all of it is known here: try again.")


async def show_pool(registry: PoolRecords, name: str) -> PoolInfo:
    """One pool.

    Raises:
        NotFound: there is no such pool.
    """
    return pool_info(_there(name, await registry.pool(check_name(name, "pool"))), registry.launches())


def pool_infos(registry: PoolRecords) -> list[PoolInfo]:
    """All of them, by name."""
    launches = list(registry.launches())
    return [pool_info(record, launches) for record in sorted(registry.pools(), key=lambda record: record.name)]


def pool_info(record: PoolRecord, launches: Iterable[LaunchRecord]) -> PoolInfo:
    """A pool with its machines, of all that there are."""
    own = sorted((each for each in launches if each.pool == record.name), key=lambda each: each.slot)
    return PoolInfo(
        pool=record.name,
        state=record.state,
        terms=record.terms,
        machines=[
            PoolMachineInfo(
                node=each.node, launch=each.id, type=each.type, zone=each.zone, state=each.state,
                since=each.changed_at, usd_per_hour=each.usd_per_hour, gpus=each.gpus,
                provider_id=each.provider_id, reason=each.reason,
            )
            for each in own
        ],
        usd_per_hour=sum(each.usd_per_hour for each in own),
    )  # fmt: skip


def check_terms(name: str, terms: PoolTerms) -> None:
    """Refuse what cannot be.

    Raises:
        BadInput: names the field, and what was expected.
    """
    for field, expected in _wrong(name, terms):
        raise BadInput(f"{field}: {expected}.", field=field)
    for type_ in terms.types:
        read_gpus(type_.gpus)
    for budget in terms.budgets:
        _check_budget(budget)


def _wrong(name: str, terms: PoolTerms) -> Iterator[tuple[str, str]]:
    names = [each.name for each in terms.types]
    if len(set(names)) != len(names):
        yield "types", "each has a name of its own"
    if len(set(terms.zones)) != len(terms.zones):
        yield "zones", "each is named once"
    if terms.purchase is Purchase.ANY:
        yield "purchase", 'expected "on-demand" or "spot": what a pool has is bought in one way'
    if terms.least_nodes > terms.most_nodes:
        yield "least_nodes", f"expected at most most_nodes, {terms.most_nodes}"
    if terms.fallback == name:
        yield "fallback", "expected another pool"
    for field, provider in (("ec2", PoolProvider.EC2), ("kubernetes", PoolProvider.KUBERNETES)):
        if (getattr(terms, field) is not None) is not (terms.provider is provider):
            yield field, f'expected with provider "{provider}", and with no other'
    if terms.provider is PoolProvider.KUBERNETES and not CLUSTER_NAME.fullmatch(name):
        yield "pool", "expected at most 40 small letters, digits and '-' of a pool on a cluster: its pods are named so"
    yield from _wrong_ec2(terms)


def _wrong_ec2(terms: PoolTerms) -> Iterator[tuple[str, str]]:
    if terms.ec2 is not None:
        lacking = [zone for zone in terms.zones if zone not in terms.ec2.subnets]
        if not terms.zones or lacking:
            yield "zones", f"expected one or more, each with a subnet in ec2.subnets; {', '.join(lacking)} has none"
        if not terms.ec2.join_url.startswith("https://"):
            yield "ec2.join_url", "expected https://…: a token goes there"
        if terms.ec2.trusted_pem and not _has_keys(terms.ec2.trusted_pem):
            yield "ec2.trusted_pem", "expected public keys (PEM)"


def _has_keys(pem: str) -> bool:
    try:
        return bool(public_keys_of(pem.encode()))
    except ValueError:
        return False


def _check_budget(budget: DisruptionBudget) -> None:
    if bool(budget.schedule) != bool(budget.duration_s):
        raise BadInput("budgets: a schedule and duration_s go together, or neither is given.", field="budgets")
    if budget.schedule:
        try:
            check_schedule(Schedule(cron=budget.schedule))
        except BadInput as error:
            raise BadInput(f"budgets: {error.detail}", field="budgets") from None


def _machines(registry: PoolRecords, name: str) -> list[LaunchRecord]:
    return [each for each in registry.launches() if each.pool == name]


def _there(name: str, record: PoolRecord | None) -> PoolRecord:
    if record is None:
        raise NotFound(f"There is no pool {name[:63]!r}.")
    return record
