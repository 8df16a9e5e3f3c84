"""What packages base environments have, and what licences locked packages have, as nodes tell.

An operator's own node is asked first, since what one tells that joined by a token is another's word. What a lock comes
to has to be built to be known, as for the first start, so it is asked for only where a policy looks at licences.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import structlog

from pilotlight_core.bus import Bus, BusError
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.agent_questions import DescribePackages, PackagesDescribed
from pilotlight_core.model.messages.node_messages import NodeReport
from pilotlight_core.model.packages.package_locks import PackageLock, environment_id
from pilotlight_core.model.records.nodes import NodeRecord
from pilotlight_core.model.spec import DEFAULT_BASE
from pilotlight_core.model.supply.inventories import BaseInventory
from pilotlight_core.model.versions.manifest_codec import INVENTORY

BASE_S = 3.0
"""For a node's answer about a base environment; a deploy goes on without one."""
BUILT_S = 90.0
"""For one about a lock, which is built first."""
KEPT, KEPT_S = 64, 300.0
"""Answers, and for how many seconds: a base environment may be changed."""
NODES_TRIED = 2

log = structlog.get_logger(__name__)


class KnownPackages(NamedTuple):
    """What is known; of what no node has told, nothing."""

    base: BaseInventory | None = None
    licences: Mapping[str, str] = {}
    """By package URL, of what is locked over it."""


class BaseInventories(Protocol):
    async def known(self, tenant: str, base: str, lock: PackageLock | None = None) -> KnownPackages:
        """Of a base environment and, if a `lock` is given, of its packages."""
        ...


class NodesSeen(Protocol):
    def reports(self, at: float, /) -> Sequence[NodeReport]: ...


class NodesKnown(Protocol):
    def node_nowait(self, node: str, /) -> NodeRecord | None: ...


class BusInventories:
    """The `BaseInventories` over the bus, for the gateway of a name."""

    def __init__(
        self,
        bus: Bus,
        fleet: NodesSeen,
        records: NodesKnown,
        *,
        region: str,
        gateway: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bus = bus
        self._fleet = fleet
        self._records = records
        self._region = region
        self._gateway = gateway
        self._clock = clock
        self._pending: dict[tuple[str, str], asyncio.Future[PackagesDescribed]] = {}
        self._kept = OrderedDict[tuple[str, str], tuple[float, KnownPackages]]()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take answers until the block ends."""
        await self._bus.subscribe(subjects.packages_locked(self._region, self._gateway), self.on_answer)
        yield

    def on_answer(self, subject: str, message: Any, _reply: str) -> None:
        """A node has answered."""
        if isinstance(message, PackagesDescribed):
            waiting = self._pending.get((subjects.node_of(subject), message.question))
            if waiting is not None and not waiting.done():
                waiting.set_result(message)

    async def known(self, tenant: str, base: str, lock: PackageLock | None = None) -> KnownPackages:
        key = base, "" if lock is None else environment_id(tenant, lock)
        kept = self._kept.get(key)
        if kept is not None and self._clock() - kept[0] < KEPT_S:
            return kept[1]
        for node in self._nodes(base)[:NODES_TRIED]:
            answer = await self._ask(node, tenant, base, lock)
            if answer is None or answer.base is None:
                continue
            found = KnownPackages(answer.base, {each.purl: each.licence for each in answer.locked if each.licence})
            self._kept[key] = self._clock(), found
            self._kept.move_to_end(key)
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return found
        return KnownPackages()

    def _nodes(self, base: str) -> list[str]:
        """Those that can tell, the operator's own first, else in any order."""
        have = [
            report.node
            for report in self._fleet.reports(self._clock())
            if base in (report.bases or (DEFAULT_BASE,)) and INVENTORY in report.features and not report.stopped
        ]
        random.shuffle(have)
        return sorted(have, key=self._is_joined)

    def _is_joined(self, node: str) -> bool:
        record = self._records.node_nowait(node)
        return record is not None and record.joined

    async def _ask(self, node: str, tenant: str, base: str, lock: PackageLock | None) -> PackagesDescribed | None:
        key = node, token(16)
        waiting: asyncio.Future[PackagesDescribed] = asyncio.get_running_loop().create_future()
        self._pending[key] = waiting
        question = DescribePackages(question=key[1], gateway=self._gateway, tenant=tenant, base=base, lock=lock)
        try:
            self._bus.publish_nowait(subjects.lock_packages(self._region, node), question)
            async with asyncio.timeout(BASE_S if lock is None else BUILT_S):
                answer = await waiting
        except (TimeoutError, BusError) as error:
            log.warning("a node does not tell its packages", node=node, error=str(error))
            return None
        finally:
            del self._pending[key]
        if answer.words:
            log.warning("a node cannot tell its packages", node=node, why=answer.words[:400])
        return answer


@dataclass(kw_only=True)
class MemoryInventories:
    """The `BaseInventories` of tests."""

    bases: dict[str, BaseInventory] = field(default_factory=dict)
    licences: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str, bool]] = field(default_factory=list)

    async def known(self, tenant: str, base: str, lock: PackageLock | None = None) -> KnownPackages:
        self.asked.append((tenant, base, lock is not None))
        return KnownPackages(self.bases.get(base), self.licences if lock is not None else {})
