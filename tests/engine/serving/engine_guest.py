"""An engine function served by the guest's own code, in this process: calls in, frames out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from pilotlight.definitions.engine_options import Sim
from pilotlight.definitions.engines.engine_specs import build_engine_spec
from pilotlight_core.model import values
from pilotlight_core.model.engines.call_facts import CallFacts
from pilotlight_core.model.messages.call_messages import WINDOW
from pilotlight_engine.serving.engine_function import EngineFunction
from pilotlight_runtime.guest.async_work_runner import run_async_work
from pilotlight_runtime.guest.call_table import CallTable
from pilotlight_runtime.guest.frames import (
    CancelCall,
    CheckpointOut,
    ChunkOut,
    GuestFrame,
    Invoke,
    Result,
    StreamStart,
    WindowUpdate,
)
from pilotlight_runtime.guest.guest_target import GuestTarget, target_of

ACME = CallFacts(tenant="acme", salt="acme")


@dataclass
class EngineCall:
    """One call that runs or has run."""

    sent: list[GuestFrame] = field(default_factory=list)
    result: Result | None = None

    @property
    def chunks(self) -> list[dict[str, Any]]:
        return [values.decode(frame.data) for frame in self.sent if isinstance(frame, ChunkOut)]

    @property
    def text(self) -> str:
        return "".join(chunk["text"] for chunk in self.chunks)

    @property
    def token_ids(self) -> list[int]:
        return [token for chunk in self.chunks for token in chunk["token_ids"]]

    def send(self, frame: GuestFrame) -> None:
        self.sent.append(frame)

    send_soon = send

    def cut(self, count: int, start: StreamStart | None = None) -> tuple[dict[int, bytes], StreamStart]:
        """What a caller has when its container is killed behind so many chunks: them, and where it goes on.

        `start` is where this one began.
        """
        had: dict[int, bytes] = {}
        start = start or StreamStart()
        for frame in self.sent:
            if isinstance(frame, CheckpointOut):
                start = StreamStart(after=frame.seq, state=frame.state)
            elif isinstance(frame, ChunkOut):
                if len(had) == count:
                    break
                had[frame.seq] = frame.data
        return had, start


class EngineGuest:
    """A guest that has loaded an engine function."""

    def __init__(self, function: EngineFunction, target: GuestTarget) -> None:
        self.function = function
        self.target = target
        self.table = CallTable()

    @property
    def engine(self) -> Any:
        return self.function._thread.engine

    def begin(
        self,
        name: str = "call_1",
        start: StreamStart | None = None,
        window: int = WINDOW,
        facts: CallFacts | None = ACME,
        **document: Any,
    ) -> tuple[EngineCall, asyncio.Task[None]]:
        """Begin a call of `generate`, which the caller awaits."""
        call = EngineCall()
        invoke = Invoke(
            call_id=name,
            method="generate",
            input=values.encode(document),
            window=window,
            resume=start or StreamStart(),
            facts=facts,
        )
        self.table.take(invoke)

        async def work() -> None:
            task = asyncio.current_task()
            assert task is not None
            done = await run_async_work(self.target, invoke, self.table, call, task)
            assert isinstance(done, Result)
            call.result = done

        return call, asyncio.get_running_loop().create_task(work())

    async def run(self, name: str = "call_1", start: StreamStart | None = None, **document: Any) -> EngineCall:
        call, task = self.begin(name, start, **document)
        self.read(call, name, 10**6)
        await task
        return call

    def read(self, call: EngineCall, name: str, upto: int) -> None:
        self.table.apply(WindowUpdate(call_id=name, upto=upto))

    def cancel(self, name: str) -> None:
        self.table.apply(CancelCall(call_id=name))


@asynccontextmanager
async def engine_guest(engine: Any = None, **options: Any) -> AsyncIterator[EngineGuest]:
    """One with an engine that steps."""
    spec = build_engine_spec({"engine": engine or Sim(), **options}, "chat")
    made: list[EngineFunction] = []

    def make(described: Any) -> EngineFunction:
        made.append(EngineFunction(described))
        return made[0]

    target = target_of(spec, make)
    for hook in target.enter:
        await hook()
    try:
        yield EngineGuest(made[0], target)
    finally:
        for hook in target.exit:
            await hook()
