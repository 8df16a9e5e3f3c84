"""The guest's side of calls that its function makes: frames out from any thread, each answer to who waits for it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from itertools import count

from pilotlight_core.model.errors import BadInput, NestedRefused
from pilotlight_core.model.messages.agent_questions import MOST_REQUEST
from pilotlight_core.model.messages.running_code import (
    IN_BATCH,
    IN_HOOK,
    RUNNING_CALL,
    NestedReply,
    open_nested_port,
)
from pilotlight_runtime.guest import exits
from pilotlight_runtime.guest.agent_channel import Channel
from pilotlight_runtime.guest.frames import Load, NestedCall, NestedLeave, NestedResult

OLD_AGENT = "agent: this node's agent is older than calls within functions. Its operator has to upgrade it."
NO_CALL = (
    "running call: nothing says which call this code runs for, so it cannot call other functions. Only code of a call "
    "can, not that of a module or hook; a thread that several calls may have started needs their context: "
    "contextvars.copy_context().run(…)."
)
HOOK = (
    "running call: a hook such as @enter() or @drain() runs for no call, so nobody would pay for those that it makes, "
    "and it cannot call other functions. Call them from a method."
)
BATCH = (
    "batch: a batched function runs several calls as one, so it cannot call other functions. Call them from the "
    "function that calls this one."
)
WITHOUT_CALL = {"": NO_CALL, IN_BATCH: BATCH, IN_HOOK: HOOK}
IN_LOOP = "event loop: .remote() would stop the event loop that its answer comes to: await .remote.aio(…)."


def fan_out_text(most: int) -> str:
    """The refusal of more nested calls than a call may wait for."""
    return (
        f"fan-out: a call may wait for {most} others at a time. Wait for some before making more: .map() does."
    )  # fmt: skip


class GuestNested:
    """Implements `running_code.NestedPort`. The server of the calls sets the attributes that it knows better."""

    def __init__(self, channel: Channel, load: Load | None = None) -> None:
        self.own_app = ""
        self.only_call: Callable[[], str] = lambda: ""
        """The id of the only call that runs, for threads without its context; "": there are several, or none."""
        self.need_reader: Callable[[], None] = lambda: None
        """Have the socket read while the function's own thread waits."""
        self.loop_thread = 0
        """The thread of the event loop that reads the socket, if one does."""
        self._channel = channel
        self._most = load.nested if load is not None else 0
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._open: dict[int, tuple[str, Future[NestedReply]]] = {}
        self._of_call = Counter[str]()

    def open(self, own_app: str) -> None:
        """Let this process's code find it."""
        self.own_app = own_app
        open_nested_port(self)

    def begin(self, function: str, request: bytes, *, of_app: bool, blocking: bool) -> Future[NestedReply]:
        if not self._most:
            raise NestedRefused(OLD_AGENT)
        if blocking and threading.get_ident() == self.loop_thread:
            raise NestedRefused(IN_LOOP)
        if len(request) > MOST_REQUEST:
            raise BadInput(f"The request has {len(request)} bytes, {MOST_REQUEST} are the most.", code="too_large")
        call_id = RUNNING_CALL.get() or self.only_call()
        if call_id in WITHOUT_CALL:
            raise NestedRefused(WITHOUT_CALL[call_id])
        begun: Future[NestedReply] = Future()
        with self._lock:
            if self._of_call[call_id] >= self._most:
                raise NestedRefused(fan_out_text(self._most))
            self._of_call[call_id] += 1
            number = next(self._numbers)
            self._open[number] = (call_id, begun)
        try:
            self.need_reader()
            with exits.with_agent():
                self._channel.send(
                    NestedCall(call_id=call_id, number=number, function=function, of_app=of_app, request=request)
                )
        except BaseException:  # such as no room for a thread: nothing was asked
            self._remove(number)
            raise
        return begun

    def leave(self, begun: Future[NestedReply]) -> None:
        number = next((number for number, (_, one) in list(self._open.items()) if one is begun), None)
        if number is not None:
            with exits.with_agent():
                self._channel.send(NestedLeave(number=number))

    def finish(self, frame: NestedResult) -> None:
        """The agent answers."""
        if (begun := self._remove(frame.number)) is not None:
            with suppress(InvalidStateError):  # who waited has left
                begun.set_result(frame)

    def _remove(self, number: int) -> Future[NestedReply] | None:
        with self._lock:
            call_id, begun = self._open.pop(number, ("", None))
            self._of_call[call_id] -= 1
            if self._of_call[call_id] <= 0:
                del self._of_call[call_id]
        return begun
