"""What packages base environments have, and what licences locked packages have, as nodes tell.

An operator's own node is asked first, since what one tells that joined by a token is another's word. What a lock comes
to has to be built to be known, as for the first start, so it is asked for only where a policy looks at licences.
"""

from __future__ import annotations

import random
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

import structlog

from pilotlight_core.model.messages.agent_questions import DescribePackages, PackagesDescribed
from pilotlight_core.model.packages.package_locks import PackageLock, environment_id
from pilotlight_core.model.spec import DEFAULT_BASE
from pilotlight_core.model.supply.inventories import BaseInventory
from pilotlight_core.model.versions.manifest_codec import INVENTORY
from pilotlight_gateway.supply.package_questions import NodesKnown, NodesSeen, PackageQuestions, is_joined

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


class BusInventories:
    """The `BaseInventories` over the bus; `records` say which nodes joined by a token."""

    def __init__(
        self,
        questions: PackageQuestions,
        fleet: NodesSeen,
        records: NodesKnown,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._questions = questions
        self._fleet = fleet
        self._records = records
        self._clock = clock
        self._kept = OrderedDict[tuple[str, str], tuple[float, KnownPackages]]()

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
        return sorted(have, key=partial(is_joined, self._records))

    async def _ask(self, node: str, tenant: str, base: str, lock: PackageLock | None) -> PackagesDescribed | None:
        def question(name: str, gateway: str) -> DescribePackages:
            return DescribePackages(question=name, gateway=gateway, tenant=tenant, base=base, lock=lock)

        within_s = BASE_S if lock is None else BUILT_S
        answer = await self._questions.ask(node, PackagesDescribed, question, within_s=within_s)
        if answer is not None and answer.words:
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
