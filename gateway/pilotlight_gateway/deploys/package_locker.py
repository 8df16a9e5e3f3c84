"""Has a node lock the requirements of a deploy: nodes have the base environments, and the way to the index.

The answer is believed from the node that was asked, as far as it names packages of an index by digests. What was locked
for the version in service is kept where a deploy asks for the same again, so that an unchanged function keeps its
version, and nothing is upgraded that nobody asked for.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import structlog

from pilotlight_core.bus import Bus, BusError
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import BadInput, Unavailable
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.agent_questions import LockPackages, PackagesLocked
from pilotlight_core.model.messages.node_messages import NodeReport
from pilotlight_core.model.packages.package_locks import PackageLock, lock_fault
from pilotlight_core.model.packages.requirement_texts import requirements_fault
from pilotlight_core.model.spec import DEFAULT_BASE
from pilotlight_core.model.versions.manifest_codec import REQUIREMENTS

log = structlog.get_logger(__name__)

LOCK_S = 90.0
"""For one node, with its line; longer than it takes itself."""
NODES_TRIED = 3
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
    """The `PackageLocker` over the bus, for the gateway of a name; `reports` has those of nodes that are there."""

    def __init__(
        self,
        bus: Bus,
        reports: Callable[[float], Sequence[NodeReport]],
        *,
        region: str,
        gateway: str,
        lock_s: float = LOCK_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bus = bus
        self._reports = reports
        self._region = region
        self._gateway = gateway
        self._lock_s = lock_s
        self._clock = clock
        self._pending: dict[tuple[str, str], asyncio.Future[PackagesLocked]] = {}
        self._kept = OrderedDict[_Asked, tuple[float, PackageLock]]()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take answers until the block ends."""
        await self._bus.subscribe(subjects.packages_locked(self._region, self._gateway), self.on_answer)
        yield

    def on_answer(self, subject: str, message: Any, _reply: str) -> None:
        """A node has answered."""
        if isinstance(message, PackagesLocked):
            waiting = self._pending.get((subjects.node_of(subject), message.question))
            if waiting is not None and not waiting.done():
                waiting.set_result(message)

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
        random.shuffle(nodes)
        why = "no node answers"
        for node in nodes[:NODES_TRIED]:
            answer = await self._ask(node, asked, known)
            if answer is None:
                continue
            if answer.reason == "unchanged" and known is not None:
                return known
            lock = answer.lock
            if answer.reason == "refused":
                raise BadInput(f"The requirements cannot be met:\n{printable(answer.words)}", field="requirements")
            if lock is not None and not lock_fault(lock) and lock.requirements == asked.requirements:
                self._kept[asked] = self._clock(), lock
                self._kept.move_to_end(asked)
                if len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
                return lock
            why = f"{node} says: {printable(answer.words)}" if answer.words else f"{node} is busy"
        raise Unavailable(f"The requirements cannot be locked now: {why}.", code="starting", retry_after=2.0)

    async def _first_reports(self) -> Sequence[NodeReport]:
        """Those of the nodes that are there; of a platform that has just started, once there are some."""
        reports = self._reports(self._clock())
        for _ in range(FIRST_LOOKS):
            if reports:
                break
            await asyncio.sleep(LOOK_S)
            reports = self._reports(self._clock())
        return reports

    async def _ask(self, node: str, asked: _Asked, known: PackageLock | None) -> PackagesLocked | None:
        """A node's answer; None: there is none."""
        key = node, token(16)
        waiting: asyncio.Future[PackagesLocked] = asyncio.get_running_loop().create_future()
        self._pending[key] = waiting
        question = LockPackages(
            question=key[1], gateway=self._gateway, tenant=asked.tenant, base=asked.base,
            requirements=asked.requirements, known_base="" if known is None else known.base_digest,
            known_python="" if known is None else known.python,
        )  # fmt: skip
        try:
            self._bus.publish_nowait(subjects.lock_packages(self._region, node), question)
            async with asyncio.timeout(self._lock_s):
                return await waiting
        except (TimeoutError, BusError) as error:
            log.warning("a node does not lock requirements", node=node, error=str(error))
            return None
        finally:
            del self._pending[key]


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
