"""The one thread that an engine belongs to: it steps while there is work, and tells the event loop what came of it.

Everything that is asked of the engine is asked between two steps. News of one step go to the loop at once, in one turn.
A call whose reader does not keep up leaves the engine, which frees its keys and values, and comes back by its tokens.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import TypeVar

from pilotlight_core.model.messages.engine_report import calls_lack_room
from pilotlight_engine.engine_port import Engine, EngineDead, EngineEvent, EngineStats, GenRequest, TokenOut
from pilotlight_engine.serving.token_inbox import FEW_UNREAD, MOST_UNREAD, TokenInbox
from pilotlight_engine.serving.token_pace import PaceFigures, TokenPace

T = TypeVar("T")
OnStats = Callable[[EngineStats, PaceFigures], None]
STATS_EVERY_S = 1.0
LOOK_EVERY_S = 0.2
"""The same where the engine comes to rest again and again, or calls begin to lack room in it, or lack it no longer."""
JOIN_S = 10.0
"""How long the end waits for a step."""


class StepThread:
    """Steps `engine` from `start` to `close`; all other methods are called in the event loop.

    `on_dead` is told, in the thread, when the engine is lost; `on_stats` each second in which it has worked, soon after
    calls begin to lack room in it or lack it no longer, when it comes to rest, and each second from then on until
    nothing is known of its pace any more.
    """

    def __init__(self, engine: Engine, on_dead: Callable[[str], None], on_stats: OnStats) -> None:
        self.engine = engine
        self._on_dead = on_dead
        self._on_stats = on_stats
        self._loop = asyncio.get_running_loop()
        self._asked: deque[Callable[[], None]] = deque()
        self._wake = threading.Condition()
        self._is_closed = False
        self._inboxes: dict[str, TokenInbox] = {}
        """By the id of the sequence in the engine."""
        self._left_behind: dict[str, TokenInbox] = {}
        """Those that left, until the engine says what they took."""
        self._pace = TokenPace()
        """Used in the thread only."""
        self._numbers = 0
        self._told_at = self._looked_at = 0.0
        self._told_lack = False
        self._has_news = True
        """Whether it has worked since it told last how it is."""
        self._is_pace_told = True
        """Whether nothing was known of its pace when it told last."""
        self._thread = threading.Thread(target=self._run, name="pilotlight-engine", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End after the step that runs."""
        with self._wake:
            self._is_closed = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join(JOIN_S)

    def admit(self, request: GenRequest, inbox: TokenInbox) -> None:
        """Give the engine a request; what it refuses comes by the inbox, as all else."""
        self._numbers += 1
        engine_id = f"{request.id}/{self._numbers}"
        inbox.engine_id, inbox.paused = engine_id, None
        self._inboxes[engine_id] = inbox
        self._ask(partial(self._admit, replace(request, id=engine_id), time.monotonic()))

    def abort(self, inbox: TokenInbox) -> None:
        """The call's end is not wanted any more: its sequence goes."""
        inbox.paused = None
        if self._inboxes.pop(inbox.engine_id, None) is not None:
            engine_id = inbox.engine_id
            self._ask(lambda: self.engine.abort(engine_id))

    async def stop(self, inbox: TokenInbox) -> None:
        """The answer has ended by its text: wait until its sequence is gone, and what it took is known."""
        if inbox.paused is not None or inbox.engine_id not in self._inboxes:
            return
        engine_id, inbox.is_stopped = inbox.engine_id, True
        self._ask(lambda: self.engine.abort(engine_id))
        await inbox.wait_end()

    def note_read(self, inbox: TokenInbox) -> None:
        """Tokens were taken out: a call that had left comes back once few are left."""
        if inbox.paused is not None and len(inbox.tokens) <= FEW_UNREAD:
            request = inbox.paused
            self.admit(replace(request, id=request.id.rpartition("/")[0]), inbox)

    async def run(self, what: Callable[[], T]) -> T:
        """Run something on the engine between two steps, and return its answer."""
        future: Future[T] = Future()

        def ran() -> None:
            if not future.set_running_or_notify_cancel():
                return  # nobody waits for it any more
            try:
                future.set_result(what())
            except BaseException as error:  # noqa: BLE001 - it is raised where it was asked for
                future.set_exception(error)

        self._ask(ran)
        return await asyncio.wrap_future(future)

    # -- in the thread ---------------------------------------------------------------------------------------------

    def _ask(self, what: Callable[[], None]) -> None:
        with self._wake:
            self._asked.append(what)
            self._wake.notify()

    def _run(self) -> None:
        try:
            while self._wait_work():
                events = self.engine.step()
                if events:
                    self._note_pace(events)
                    self._loop.call_soon_threadsafe(self._deliver, events)
                self._report_if_due()
        except EngineDead as error:
            self._on_dead(str(error))
        except RuntimeError as error:
            if not self._loop.is_closed():  # the process ends meanwhile
                self._on_dead(f"{type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001 - nothing steps the engine from here on
            self._on_dead(f"{type(error).__name__}: {error}")

    def _wait_work(self) -> bool:
        """Do what was asked; wait until the engine has work. False: it is over."""
        while True:
            with self._wake:
                while not self._asked and not self._is_closed and not self.engine.has_work():
                    self._rest()
                asked, closed = list(self._asked), self._is_closed
                self._asked.clear()
            if closed:
                return False
            for one in asked:
                one()
            if self.engine.has_work():
                return True

    def _rest(self) -> None:
        """Wait to be woken; tell how the engine is, once."""
        every_s = LOOK_EVERY_S if self._has_news else STATS_EVERY_S
        due_s = self._told_at + every_s - time.monotonic()
        if not self._has_news and self._is_pace_told:
            self._wake.wait()
        elif due_s > 0:
            self._wake.wait(due_s)
        else:
            self._report(time.monotonic(), self.engine.stats())
            self._has_news = False

    def _report_if_due(self) -> None:
        at, self._has_news = time.monotonic(), True
        if at - self._looked_at < LOOK_EVERY_S:
            return
        self._looked_at, stats = at, self.engine.stats()
        if at - self._told_at >= STATS_EVERY_S or _lacks_room(stats) is not self._told_lack:
            self._report(at, stats)

    def _report(self, at: float, stats: EngineStats) -> None:
        self._told_at, self._told_lack = at, _lacks_room(stats)
        self._is_pace_told = self._pace.is_empty(at)
        self._on_stats(stats, self._pace.figures(at))

    def _note_pace(self, events: list[EngineEvent]) -> None:
        self._pace.add_tokens([event.id for event in events if type(event) is TokenOut], time.monotonic())
        for event in events:
            if type(event) is not TokenOut:
                self._pace.remove(event.id)

    def _admit(self, request: GenRequest, asked_at: float) -> None:
        try:
            self.engine.admit(request)
            self._pace.admit(request.id, asked_at, is_resumed=bool(request.prefix_out))
        except EngineDead:
            raise
        except Exception as error:  # noqa: BLE001 - a refusal, or a fault of the engine: this call's either way
            self._loop.call_soon_threadsafe(self._refuse, request.id, error)

    def _leave(self, engine_id: str) -> None:
        """Take a sequence out of the engine, with what it needs to come back."""
        request = self.engine.checkpoint(engine_id)
        if request is not None:
            self.engine.abort(engine_id)
        self._loop.call_soon_threadsafe(self._left, engine_id, request)

    # -- in the loop -----------------------------------------------------------------------------------------------

    def _deliver(self, events: list[EngineEvent]) -> None:
        for event in events:
            inbox = self._inboxes.get(event.id)
            if inbox is None:
                self._note_left(event)
                continue
            if isinstance(event, TokenOut):
                inbox.add(event)
                if len(inbox.tokens) >= MOST_UNREAD and not inbox.is_leaving:
                    inbox.is_leaving = True
                    self._ask(partial(self._leave, event.id))
                continue
            del self._inboxes[event.id]
            if inbox.cached is None:
                inbox.cached = event.usage.cached_tokens
            inbox.add(event)

    def _note_left(self, event: EngineEvent) -> None:
        """An event of a sequence for which nobody waits, or which is to come back."""
        left = None if isinstance(event, TokenOut) else self._left_behind.pop(event.id, None)
        if left is not None and left.cached is None and not isinstance(event, TokenOut):
            left.cached = event.usage.cached_tokens
        if left is not None and left.is_stopped:
            left.add(event)

    def _refuse(self, engine_id: str, error: Exception) -> None:
        inbox = self._inboxes.pop(engine_id, None)
        if inbox is not None:
            inbox.refuse(error)

    def _left(self, engine_id: str, request: GenRequest | None) -> None:
        inbox = self._inboxes.get(engine_id)
        if inbox is None:
            return
        inbox.is_leaving = False
        if request is not None:
            self._left_behind[engine_id] = self._inboxes.pop(engine_id)
            if not inbox.is_stopped:
                inbox.paused = request
                self.note_read(inbox)


def _lacks_room(stats: EngineStats) -> bool:
    return calls_lack_room(stats.waiting, stats.running, stats.kv_used, stats.kv_total)
