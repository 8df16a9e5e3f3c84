"""Has a node lock the requirements of a deploy: nodes have the base environments, and the way to the index.

An operator's own node is believed, as far as it names packages of an index by digests. One that joined by a token may
be another's, and could choose other packages than the resolver does: it is asked where there is no other, and believed
if a second one says the same, or there is none. What was locked for the version in service is kept where a deploy asks
for the same again, so that an unchanged function keeps its version, and nothing is upgraded that nobody asked for.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import structlog

from pilotlight_core.model.errors import BadInput, Unavailable
from pilotlight_core.model.messages.agent_questions import LockPackages, PackagesLocked
from pilotlight_core.model.messages.node_messages import NodeReport
from pilotlight_core.model.packages.package_locks import PackageLock, lock_fault
from pilotlight_core.model.packages.requirement_texts import requirements_fault
from pilotlight_core.model.spec import DEFAULT_BASE
from pilotlight_core.model.versions.manifest_codec import REQUIREMENTS
from pilotlight_gateway.supply.package_questions import NodesKnown, NodesSeen, PackageQuestions, is_joined

log = structlog.get_logger(__name__)

LOCK_S = 90.0
"""For one node, with its line; longer than it takes itself."""
NODES_TRIED = 3
VOICES = 2
"""Of nodes that joined by a token so many have to say the same, if there is no node of the operator's own."""
FIRST_LOOKS, LOOK_S = 60, 0.25
"""How often a deploy looks for the first report of any node, right after a start; and how long it is between two."""
KEPT = 32
"""Locks, of half a megabyte at most, between the two requests of a deploy: the first one names what to upload."""
KEPT_S = 600.0
NO_INDEX = (
    "requirements= needs a node that has a package index: an operator names it, 'pilotlight up --package-index URL' or "
    "--package-index of the agents"
)


class PackageLocker(Protocol):
    """Locks requirements over a base environment."""

    async def lock(
        self, tenant: str, base: str, requirements: tuple[str, ...], known: PackageLock | None = None
    ) -> PackageLock:
        """The lock of sorted requirements; the `known` one as long as the base environment is that of it.

        Raises:
            BadInput: the resolver's words, or no node of this base has an index. Unavailable: none answers now.
        """
        ...


class _Asked(NamedTuple):
    tenant: str
    base: str
    requirements: tuple[str, ...]


class BusLocker:
    """The `PackageLocker` over the bus; `records` say which nodes joined by a token."""

    def __init__(
        self,
        questions: PackageQuestions,
        fleet: NodesSeen,
        records: NodesKnown,
        *,
        lock_s: float = LOCK_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._questions = questions
        self._fleet = fleet
        self._records = records
        self._lock_s = lock_s
        self._clock = clock
        self._kept = OrderedDict[_Asked, tuple[float, PackageLock]]()

    async def lock(
        self, tenant: str, base: str, requirements: tuple[str, ...], known: PackageLock | None = None
    ) -> PackageLock:
        if why := requirements_fault(requirements):
            raise BadInput(f"requirements=: {why}.", field="requirements")
        asked = _Asked(tenant, base, requirements)
        kept = self._kept.get(asked)
        if kept is not None and self._clock() - kept[0] <= KEPT_S:
            return kept[1]
        nodes = nodes_for(await self._first_reports(), base)
        own = [node for node in nodes if not is_joined(self._records, node)]
        lock = await self._agreed(own or nodes, asked, known, voices=1 if own else min(len(nodes), VOICES))
        if lock is not known:
            self._kept[asked] = self._clock(), lock
            self._kept.move_to_end(asked)
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return lock

    async def _agreed(self, nodes: list[str], asked: _Asked, known: PackageLock | None, *, voices: int) -> PackageLock:
        """What so many of the nodes say alike: a lock, or that there can be none. Raises BadInput and Unavailable."""
        random.shuffle(nodes)
        why, said = "no node answers", Counter[PackageLock | None]()
        for node in nodes[: NODES_TRIED + voices - 1]:
            answer = await self._ask(node, asked, known)
            if answer is None:
                continue
            lock = known if answer.reason == "unchanged" else answer.lock
            is_lock = lock is not None and not lock_fault(lock) and lock.requirements == asked.requirements
            if answer.reason != "refused" and not is_lock:
                why = f"a node says: {printable(answer.words)}" if answer.words else "a node is busy"
                continue
            if answer.reason == "refused":
                lock = None
            said[lock] += 1
            if said[lock] >= voices and lock is not None:
                return lock
            if said[lock] >= voices:
                raise BadInput(f"The requirements cannot be met:\n{printable(answer.words)}", field="requirements")
            why = "one node has answered alone"
        if len(said) > 1:
            log.error(
                "nodes that joined by a token lock otherwise than each other", tenant=asked.tenant, base=asked.base
            )
            why = "nodes that joined by a token do not say the same: an operator's own node locks alone"
        raise Unavailable(f"The requirements cannot be locked now: {why}.", code="starting", retry_after=2.0)

    async def _first_reports(self) -> Sequence[NodeReport]:
        """Those of the nodes that are there; of a platform that has just started, once there are some."""
        reports = self._fleet.reports(self._clock())
        for _ in range(FIRST_LOOKS):
            if reports:
                break
            await asyncio.sleep(LOOK_S)
            reports = self._fleet.reports(self._clock())
        return reports

    async def _ask(self, node: str, asked: _Asked, known: PackageLock | None) -> PackagesLocked | None:
        def question(name: str, gateway: str) -> LockPackages:
            return LockPackages(
                question=name, gateway=gateway, tenant=asked.tenant, base=asked.base,
                requirements=asked.requirements, known_base="" if known is None else known.base_digest,
                known_python="" if known is None else known.python,
            )  # fmt: skip

        return await self._questions.ask(node, PackagesLocked, question, within_s=self._lock_s)


def nodes_for(reports: Sequence[NodeReport], base: str) -> list[str]:
    """The nodes that can lock over a base environment.

    Raises:
        BadInput: none can, and what an operator does about it. Unavailable: none is known, as after a restart.
    """
    if not reports:
        raise Unavailable(
            "The requirements cannot be locked now: no node has told this gateway that it is there.",
            code="starting",
            retry_after=2.0,
        )
    have = [report for report in reports if base in (report.bases or (DEFAULT_BASE,)) and not report.stopped]
    found = [report.node for report in have if REQUIREMENTS in report.features]
    if not found:
        of_base = "" if base == DEFAULT_BASE else f" with the base environment {base!r}"
        raise BadInput(f"{NO_INDEX}. No node{of_base} has one now.", field="requirements")
    return found


def printable(words: str) -> str:
    """What a node says, without what would act on a terminal."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in words)


@dataclass(kw_only=True)
class MemoryLocker:
    """An in-memory `PackageLocker`, which has `locks` (by requirements) or refuses with `words`."""

    locks: dict[tuple[str, ...], PackageLock] = field(default_factory=dict)
    words: str = "There is no index."
    asked: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)

    async def lock(
        self, tenant: str, base: str, requirements: tuple[str, ...], known: PackageLock | None = None
    ) -> PackageLock:
        self.asked.append((tenant, base, requirements))
        found = known or self.locks.get(requirements)
        if found is None:
            raise BadInput(self.words, field="requirements")
        return found
