"""The public keys of each issuer on record, and when they are fetched again.

    fresh ──FRESH_FOR_S──▶ old ──the record's stale_ok_s──▶ too old: no token of the issuer can be checked
      ▲                     │
      └──── fetched ◀───────┘  beside the requests, as long as anybody sends its tokens

A request waits for a fetch only if there are no keys to go by, if it names one that is not there, or if nobody has
looked for long what the issuer shows: then at most once in UNKNOWN_KEY_S, however many ask. What is fetched, and where,
is the record's; a token only ever chooses among keys.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import structlog

from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.records.issuers import IssuerRecord
from pilotlight_gateway.oidc.jwks import NoKeySet, SignatureKey, candidates, read_key_set
from pilotlight_gateway.oidc.jwks_source import FETCH_S, IssuerSilent, JwksSource

FRESH_FOR_S = 600.0
RETRY_S = 10.0
"""Between two attempts of which the first one failed."""
UNKNOWN_KEY_S = 30.0
"""Between two fetches because of a key that is not known."""
IN_USE_S = 3_600.0
"""How long after its last token an issuer's keys are kept fresh."""
CHECK_EVERY_S = 5.0
WAITING_AT_MOST = 256
"""Requests that wait for the keys of one issuer."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class KnownKeys:
    """What is known of an issuer's keys. Instants are monotonic seconds."""

    url: str
    keys: tuple[SignatureKey, ...] = ()
    fetched_at: float = -math.inf
    tried_at: float = -math.inf
    asked_at: float = -math.inf
    problem: str = ""

    def holds(self, at: float, stale_ok_s: float) -> bool:
        """Whether tokens may be checked by them."""
        return at - self.fetched_at < stale_ok_s

    def may_try(self, at: float, *, unknown_key: bool = False) -> bool:
        """Whether they may be fetched, also if that has just failed or brought nothing new."""
        return at - self.tried_at >= (UNKNOWN_KEY_S if unknown_key else RETRY_S)

    def is_forgotten(self, at: float) -> bool:
        """Whether nobody has looked lately: the issuer may have withdrawn them, and would say so."""
        return at - self.fetched_at >= 2 * FRESH_FOR_S and self.may_try(at, unknown_key=True)

    def is_due(self, at: float) -> bool:
        """Whether they should be fetched, though nobody waits for it."""
        return at - self.asked_at < IN_USE_S and at - self.fetched_at >= FRESH_FOR_S and self.may_try(at)


@dataclass
class _Fetching:
    """A fetch that requests wait for, or that somebody has asked for."""

    record: IssuerRecord
    done: asyncio.Event = field(default_factory=asyncio.Event)
    started: bool = False
    waiting: int = 0


class IssuerKeys:
    """Keeps them; `running` fetches. `clock` is monotonic."""

    def __init__(
        self,
        source: JwksSource,
        records: Callable[[], Iterable[IssuerRecord]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._records = records
        self._clock = clock
        self._known: dict[str, KnownKeys] = {}
        self._fetching: dict[tuple[str, str], _Fetching] = {}
        self._wanted = asyncio.Event()

    def known(self, record: IssuerRecord) -> KnownKeys:
        """What is known of the issuer's keys now."""
        found = self._known.get(record.name)
        return found if found is not None and found.url == record.jwks_url else KnownKeys(url=record.jwks_url)

    async def find(self, record: IssuerRecord, algorithm: str, name: str | None) -> list[SignatureKey]:
        """The keys with which a token may be signed; []: there are none.

        Raises:
            Unavailable: `issuer_unavailable`: there are no keys to go by, and none can be had now.
        """
        at = self._clock()
        known = self._known[record.name] = replace(self.known(record), asked_at=at)
        if known.holds(at, record.stale_ok_s) and known.is_forgotten(at):
            with contextlib.suppress(Unavailable):  # a silent issuer's count on
                await self._fetched(record)
            known, at = self.known(record), self._clock()
        if known.holds(at, record.stale_ok_s):
            found = candidates(known.keys, algorithm, name)
            if found or not (_place_of(record) in self._fetching or known.may_try(at, unknown_key=True)):
                return found
        elif not (_place_of(record) in self._fetching or known.may_try(at)):
            raise unavailable(record, known)
        await self._fetched(record)
        known = self.known(record)
        if not known.holds(self._clock(), record.stale_ok_s):
            raise unavailable(record, known)
        return candidates(known.keys, algorithm, name)

    def wake(self) -> None:
        """Look now at what is due: records have changed."""
        self._wanted.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Fetch while the block runs."""
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(self._watch(group))
            try:
                yield
            finally:
                watching.cancel()

    async def _watch(self, group: asyncio.TaskGroup) -> None:
        async with contextlib.AsyncExitStack() as stack:
            fetches: set[asyncio.Task[None]] = set()
            stack.callback(lambda: [task.cancel() for task in fetches])
            while True:
                self._enqueue_due()
                for fetching in self._fetching.values():
                    if not fetching.started:
                        fetching.started = True
                        task = group.create_task(self._fetch(fetching))
                        fetches.add(task)
                        task.add_done_callback(fetches.discard)
                self._wanted.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(CHECK_EVERY_S):
                        await self._wanted.wait()

    def _enqueue_due(self) -> None:
        at, records = self._clock(), {record.name: record for record in self._records()}
        for name in [name for name in self._known if name not in records]:
            del self._known[name]
        for record in records.values():
            if _place_of(record) not in self._fetching and self.known(record).is_due(at):
                self._fetching[_place_of(record)] = _Fetching(record)

    async def _fetched(self, record: IssuerRecord) -> None:
        """Wait for a fetch, which others may have asked for."""
        fetching = self._fetching.setdefault(_place_of(record), _Fetching(record))
        if fetching.waiting >= WAITING_AT_MOST:
            raise unavailable(record, self.known(record))
        self._wanted.set()
        fetching.waiting += 1
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2 * FETCH_S):
                    await fetching.done.wait()
        finally:
            fetching.waiting -= 1

    async def _fetch(self, fetching: _Fetching) -> None:
        record, known = fetching.record, self.known(fetching.record)
        try:
            keys = read_key_set(await self._source.fetch(record.jwks_url))
        except Exception as error:  # whatever an issuer does, the gateway goes on
            problem = str(error) if isinstance(error, IssuerSilent) else f"{record.jwks_url}: {error}"
            if not isinstance(error, IssuerSilent | NoKeySet):
                log.exception("an issuer's keys cannot be fetched", issuer=record.name)
            elif problem != known.problem:
                log.warning("an issuer's keys cannot be fetched", issuer=record.name, error=problem)
            known = replace(known, tried_at=self._clock(), problem=problem)
        else:
            at = self._clock()
            if known.problem or not known.keys:
                log.info("an issuer's keys were fetched", issuer=record.name, keys=len(keys))
            known = replace(known, keys=keys, fetched_at=at, tried_at=at, problem="")
        finally:
            self._fetching.pop(_place_of(record), None)
            fetching.done.set()
        if any(_place_of(one) == _place_of(record) for one in self._records()):  # or it has moved meanwhile
            self._known[record.name] = replace(known, asked_at=max(known.asked_at, self.known(record).asked_at))


def _place_of(record: IssuerRecord) -> tuple[str, str]:
    return record.name, record.jwks_url


def unavailable(record: IssuerRecord, known: KnownKeys) -> Unavailable:
    """The error of tokens that nobody can check now."""
    why = known.problem or "it has not answered yet"
    return Unavailable(
        f"The keys of the issuer {record.name} cannot be had, so its tokens cannot be checked: {why}.",
        code="issuer_unavailable",
        retry_after=RETRY_S,
    )
