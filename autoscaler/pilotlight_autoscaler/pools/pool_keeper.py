"""Keeps the machines of all pools as they should be, while its controller leads.

    look      providers' lists and notices, at intervals; agents' reports, from the world
    step      for each launch on record what is next (`launch_steps`)
    end       nodes that are too many (`surplus_nodes`)
    launch    machines for what has no place (`wanted_nodes`), each put on record first

Each tick begins from the records. What it asks providers for goes on beside it, bounded, and is asked again by whoever
leads next: a launch by its id, found by its tags.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from itertools import count

import structlog

from pilotlight_autoscaler.observations.container_index import is_parked
from pilotlight_autoscaler.observations.node_hopes import AwaitedNode, NodeHopes
from pilotlight_autoscaler.observations.spot_zones import SpotZones
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.policy.nodes.launch_steps import LaunchStep, NextStep, next_step
from pilotlight_autoscaler.policy.nodes.pool_view import PoolView, as_empty
from pilotlight_autoscaler.policy.nodes.spot_nodes import SpotSigns, relieved_nodes, stands_in
from pilotlight_autoscaler.policy.nodes.surplus_nodes import PoolNode, surplus_nodes
from pilotlight_autoscaler.policy.nodes.wanted_nodes import UnplacedStarts, WantedNode, wanted_nodes
from pilotlight_autoscaler.pools.launch_book import Deposed, LaunchBook, PoolRegistry
from pilotlight_autoscaler.pools.machine_requests import ATTEMPT_S, LeaseView, MachineRequests, as_listed
from pilotlight_autoscaler.pools.machine_sights import MachineSights
from pilotlight_autoscaler.pools.node_pool import (
    NoticeAbout,
    PoolError,
    PoolMachine,
    PoolNotice,
)
from pilotlight_autoscaler.pools.open_pools import OpenPool, OpenPools
from pilotlight_autoscaler.pools.pool_counts import ALL, PoolCounts
from pilotlight_autoscaler.pools.spot_pools import SpotPools
from pilotlight_core.bus import BusError
from pilotlight_core.model.api.pools.pool_agent_api import MOST_POOL_AGENTS, POOL_AGENT_NODE
from pilotlight_core.model.api.pools.pool_terms import GIVE_UP_AFTER_S, PoolProvider
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.ewma import ewma
from pilotlight_core.model.ids import token
from pilotlight_core.model.records.pools import LaunchRecord, LaunchState, PoolRecord
from pilotlight_placement.hardware.node import Node

TICK_S = 0.5
LIST_EVERY_S = {PoolProvider.LOCAL: 1.0, PoolProvider.EC2: 10.0, PoolProvider.KUBERNETES: 5.0}
SETTLE_S = 3.0
"""A new leader waits for every node's report before it launches or ends any."""
BATCH_S = 1.0
"""What has no place waits for so long before a machine is launched for it: places become free, and others come that
share the machine."""
LOST_S = 15.0
"""A node that drains and has not been heard of for so long, nor since the lease began, is empty."""
SMOOTHING = 0.3

log = structlog.get_logger(__name__)


class PoolKeeper:
    """`zone` is that of pools which name none. `spot_zones` knows which took spot nodes away lately."""

    def __init__(
        self,
        world: World,
        registry: PoolRegistry,
        lease: LeaseView,
        open_pool: OpenPool,
        *,
        region: str,
        zone: str,
        spot_zones: SpotZones | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._world = world
        self._registry = registry
        self._lease = lease
        self._book = LaunchBook(registry, lambda: lease.epoch)
        self._region = region
        self._zone = zone
        self._spot = SpotPools(world, spot_zones or SpotZones(), clock)
        self._clock = clock
        self._wall = wall
        self._epoch = 0
        self._sights = MachineSights()
        self._seen: dict[tuple[str, str, str], Node] = {}
        """By pool, its digest and type: one of its nodes as its agent reports it, without containers."""
        self._short_since: dict[str, float] = {}
        """By version without a place: since when that was seen."""
        self._listing: set[str] = set()
        self._list_at: dict[str, float] = {}
        self.tasks: asyncio.TaskGroup
        self.counts = PoolCounts()
        self._pools = OpenPools(open_pool)
        self._requests = MachineRequests(
            self._book, lease, self._pools, self.counts, region=region, on_ended=self._list_soon, clock=clock, wall=wall
        )

    async def run(self) -> None:
        """Tick until cancelled."""
        try:
            async with asyncio.TaskGroup() as self.tasks:
                while True:
                    await asyncio.sleep(TICK_S)
                    if not self._lease.valid(self._clock()):
                        continue
                    try:
                        await self.tick()
                    except (BusError, Deposed, PilotlightError) as error:
                        log.warning("pools are looked at again", error=repr(error))
                    except Exception:  # whatever is wrong with pools, the fleet that there is goes on
                        self.counts.failed(ALL, "tick")
                        log.exception("pools cannot be looked at")
        finally:
            await self._pools.aclose()

    async def tick(self) -> None:
        """Look at all pools once."""
        records = {record.name: record for record in self._registry.pools()}
        launches = {launch.id: launch for launch in self._registry.launches()}
        if self._epoch != self._lease.epoch:
            self._epoch = self._lease.epoch
            self._sights = MachineSights(watched_since=self._wall(), asking=self._sights.asking)
            self._requests.sights, self._requests.tasks = self._sights, self.tasks
        if not records and not launches:
            self._world.hopes = NodeHopes()
            self.counts.measured((), {})
            return
        at = self._wall()
        self._sights.keep(launches)
        self._pools.close_others(records, self.tasks)
        self._inspect_nodes(launches.values(), at)
        self._start_lists(records, at)
        for launch in launches.values():
            pool = records.get(launch.pool)
            sight = self._sights.sight(launch)
            step = next_step(launch, sight, _give_up_s(pool), at, has_pool=pool is not None)
            try:
                await self._take(launch, step, pool, at)
            except Deposed as error:
                log.warning("a launch is another leader's", launch=launch.id, error=str(error))
        self._end_orphans(records, launches, at)
        views = self._views(records)
        self._world.hopes.pools = views
        if at - self._sights.watched_since >= SETTLE_S:
            signs = self._spot.signs(views, at)
            await self._end_surplus(views, signs, at)
            await self._launch_wanted(views, signs, at)
        self.counts.measured(self._registry.launches(), records)

    # --- look ---

    def _inspect_nodes(self, launches: Collection[LaunchRecord], at: float) -> None:
        now = self._clock()
        coming = {pending.node for pending in self._world.pending.values()}
        coming |= {step.node for step, _ in self._world.executions.starts()}
        coming |= {told.coming.node for told in self._world.unparking.values()}
        for launch in launches:
            report = self._world.nodes.get(launch.node)
            if report is None:
                is_gone = launch.is_going and at - self._sights.last_report_at(launch.id) > LOST_S
                self._sights.node_seen(launch.id, None, is_empty=is_gone, at=at)
                continue
            heard_at = at - (now - self._world.seen.get(launch.node, now))
            # What is parked is a cache, which keeps no machine.
            is_empty = launch.node not in coming and all(is_parked(each) for each in report.containers)
            self._sights.node_seen(launch.id, heard_at, is_empty=is_empty, at=at)

    def _start_lists(self, records: Mapping[str, PoolRecord], at: float) -> None:
        for record in records.values():
            if record.name in self._listing or at < self._list_at.get(record.name, 0.0):
                continue
            self._list_at[record.name] = at + LIST_EVERY_S[record.terms.provider]
            self._listing.add(record.name)
            self.tasks.create_task(self._list(record, at))

    def _list_soon(self, pool: str) -> None:
        self._list_at[pool] = 0.0

    async def _list(self, record: PoolRecord, at: float) -> None:
        try:
            async with asyncio.timeout(ATTEMPT_S):
                pool = self._pools.pool(record)
                machines = await pool.list_machines()
                launches = [each for each in self._registry.launches() if each.pool == record.name]
                self._sights.list_read(record.name, machines, launches, at)
                await self._take_notices(record, await pool.notices(), machines)
        except (PoolError, TimeoutError, ValueError) as error:
            self.counts.failed(record.name, "list")
            log.warning("the machines of a pool cannot be listed", pool=record.name, error=str(error))
        except Exception as error:  # noqa: BLE001 - also an answer that nobody has foreseen
            # Opened anew it does not confirm what was heard, so that it is heard again.
            self._pools.forget(record.name)
            self.counts.failed(record.name, "list")
            log.warning("what a pool's provider said is heard again", pool=record.name, error=repr(error))
        finally:
            self._listing.discard(record.name)

    async def _take_notices(
        self, record: PoolRecord, notices: Sequence[PoolNotice], machines: Sequence[PoolMachine]
    ) -> None:
        by_machine = {each.provider_id: each.launch for each in machines}
        launches = {each.id: each for each in self._registry.launches()}  # pools may share a queue
        known = {each.provider_id: each for each in launches.values() if each.provider_id}
        for notice in notices:
            launch = known.get(notice.provider_id) or launches.get(by_machine.get(notice.provider_id, ""))
            if launch is None or launch.provider_id not in ("", notice.provider_id):
                continue
            log.info("notice", pool=record.name, node=launch.node, about=notice.about, reason=notice.reason)
            if notice.about is NoticeAbout.INTERRUPTION:
                self._spot.note_lack(launch)
            if notice.about is not NoticeAbout.STATE and launch.state in (LaunchState.LAUNCHING, LaunchState.UP):
                reason = notice.reason or f"its provider: {notice.about}"
                await self._book.move(launch, LaunchState.DRAINING, self._wall(), reason)

    # --- step ---

    async def _take(self, launch: LaunchRecord, next_: NextStep, pool: PoolRecord | None, at: float) -> None:
        machine = self._sights.machine(launch)
        if machine is not None and as_listed(launch, machine, pool) != launch:
            await self._book.change(launch, lambda now: as_listed(now, machine, pool))
            await self._book.set_node_zone(as_listed(launch, machine, pool))
        if launch.is_going:
            await self._book.drain_node(launch)
        match next_.step:
            case LaunchStep.LAUNCH if pool is not None and pool.is_open:
                await self._requests.start_launch(launch, pool, at)
            case LaunchStep.LAUNCH:
                await self._book.move(launch, LaunchState.ENDING, at, "its pool is drained")
            case LaunchStep.ARRIVE:
                self._note_arrival(launch, at)
                await self._book.move(launch, LaunchState.UP, at)
                await self._book.drop_tokens(launch)
            case LaunchStep.END:
                if launch.state is LaunchState.LAUNCHING:
                    self.counts.failed(launch.pool, "never_reported")
                log.info("a machine is ended", pool=launch.pool, node=launch.node, why=next_.reason)
                await self._book.move(launch, LaunchState.ENDING, at, next_.reason)
            case LaunchStep.TERMINATE if pool is not None and machine is not None:
                self._requests.start_ending(pool, machine, at)
            case LaunchStep.FORGET:
                self._requests.forget(launch.id)
                await self._book.forget(launch)
                if pool is None and launch.provider_id:
                    self.counts.failed(launch.pool, "left_behind")
                    log.error(
                        "a machine may be left: end it at its provider", machine=launch.provider_id, why=next_.reason
                    )
                log.info("a machine is gone", pool=launch.pool, node=launch.node, why=launch.reason)

    def _note_arrival(self, launch: LaunchRecord, at: float) -> None:
        took_s = at - launch.made_at
        known = self._world.hopes.start_s.get(launch.pool)
        self._world.hopes.start_s[launch.pool] = ewma(known, took_s, SMOOTHING) if known is not None else took_s
        self._requests.forget(launch.id)
        self.counts.arrived(launch.pool, took_s)
        log.info("a node is up", pool=launch.pool, node=launch.node, after_s=round(took_s, 1))

    def _end_orphans(self, records: Mapping[str, PoolRecord], launches: Mapping[str, LaunchRecord], at: float) -> None:
        for record in records.values():
            for machine in self._sights.orphans(record.name, launches, at):
                log.warning("a machine that no record knows is ended", pool=record.name, machine=machine.provider_id)
                self._requests.start_ending(record, machine, at)

    # --- decide ---

    def _views(self, records: Mapping[str, PoolRecord]) -> list[PoolView]:
        launches: dict[str, list[LaunchRecord]] = {}
        for launch in self._registry.launches():
            launches.setdefault(launch.pool, []).append(launch)
        return [
            PoolView(
                record=record, launches=tuple(launches.get(name, ())), region=self._region, zone=self._zone,
                digest=record.terms.digest, missing_until=self._requests.missing(name),
                seen=self._seen_of(record, launches.get(name, ())),
            )
            for name, record in sorted(records.items())
        ]  # fmt: skip

    def _seen_of(self, record: PoolRecord, launches: Collection[LaunchRecord]) -> dict[str, Node]:
        digest = record.terms.digest
        self._seen = {key: node for key, node in self._seen.items() if key[0] != record.name or key[1] == digest}
        for launch in launches:
            key = record.name, digest, launch.type
            is_new = launch.digest == record.terms.digest_of(launch.type)
            if launch.state is LaunchState.UP and is_new and key not in self._seen:
                node = self._world.placed_node(launch.node)
                if node is not None and (node.gpus or node.slots):
                    self._seen[key] = as_empty(node)
        return {key[2]: node for key, node in self._seen.items() if key[0] == record.name}

    async def _end_surplus(self, views: Sequence[PoolView], signs: SpotSigns, at: float) -> None:
        waiting = [ask for _, ask, _ in self._world.refusals.unplaced(str)]
        for view in views:
            nodes = [
                PoolNode(launch=launch, empty_since=self._sights.empty_since(launch.id))
                for launch in view.launches
                if not stands_in(launch, views)
            ]
            found = surplus_nodes(view, nodes, waiting, at, spares=signs.spares.get(view.name, 0))
            for launch, why in found + relieved_nodes(view, views, signs):
                log.info("a node goes", pool=view.name, node=launch.node, why=why)
                with suppress(Deposed):
                    await self._book.move(launch, LaunchState.DRAINING, at, why)
                    await self._book.drain_node(launch)

    async def _launch_wanted(self, views: Sequence[PoolView], signs: SpotSigns, at: float) -> None:
        world = self._world
        unplaced = world.refusals.unplaced(world.tenant_of)
        self._short_since = {version: self._short_since.get(version, at) for version, _, _ in unplaced}
        short = [
            UnplacedStarts(version=version, ask=ask, count=missing)
            for version, ask, missing in unplaced
            if at - self._short_since[version] >= BATCH_S
        ]
        if any(self._sights.list_age(view.name, at) is None for view in views if view.record.is_open):
            views = [view for view in views if self._sights.list_age(view.name, at) is not None]
        fleet = world.fleet(self._clock())
        decision = wanted_nodes(short, views, fleet, world.prices, at, signs=signs)
        awaited = dict(decision.awaited)
        for wanted in decision.wanted:
            with suppress(Deposed):
                launch = await self._record(wanted, next(view for view in views if view.name == wanted.pool), at)
                awaited |= dict.fromkeys(wanted.versions, launch.id)
        launches = {launch.id: launch for launch in self._registry.launches()}
        world.hopes.refused = decision.refused
        world.hopes.awaited = {
            version: AwaitedNode(pool=launches[name].pool, node=launches[name].node, since=launches[name].made_at)
            for version, name in awaited.items()
            if name in launches
        }

    async def _record(self, wanted: WantedNode, view: PoolView, at: float) -> LaunchRecord:
        """Put a launch on record; the next tick asks the provider."""
        every = list(self._registry.launches())
        taken = {each.slot for each in every if each.pool == wanted.pool}
        launch = LaunchRecord(
            id=token(16), pool=wanted.pool, slot=next(slot for slot in count(1) if slot not in taken),
            node=_node_name(view.record, every), type=wanted.type, types=wanted.types, zone=wanted.zone,
            spot=view.record.terms.is_spot, made_at=at, changed_at=at, gpus=wanted.gpus,
            usd_per_hour=wanted.usd_per_hour, digest=view.record.terms.digest_of(wanted.type),
            stands_in=wanted.stands_in,
        )  # fmt: skip
        made = await self._book.create(launch)
        now = await self._registry.pool(wanted.pool)
        # Drained meanwhile, and perhaps removed: nobody would end the machine.
        if now is None or not (now.is_open and now.terms.most_nodes):
            await self._book.forget(made)
            raise Deposed(f"the pool {wanted.pool} is drained")
        log.info(
            "a node is launched", pool=launch.pool, node=launch.node, type=launch.type, zone=launch.zone,
            versions=wanted.versions,
        )  # fmt: skip
        await self._requests.start_launch(made, view.record, at)
        return made


def _node_name(pool: PoolRecord, launches: Collection[LaunchRecord]) -> str:
    """A name that no machine has. Of agents on this machine there are so many, since each has a user on the bus."""
    taken = {each.node for each in launches}
    if pool.terms.provider is PoolProvider.LOCAL:
        names = (POOL_AGENT_NODE.format(number) for number in range(1, MOST_POOL_AGENTS + 1))
        return next((name for name in names if name not in taken), POOL_AGENT_NODE.format(MOST_POOL_AGENTS + 1))
    return f"{pool.name[:40]}-{token(8)}"


def _give_up_s(pool: PoolRecord | None) -> float:
    return pool.terms.give_up_after_s if pool is not None else GIVE_UP_AFTER_S
