"""An agent in this process with real guests on a real bus, and a harness that plays controller, home and origin."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import socket
import textwrap
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import uvicorn

from pilotlight_core.bus import Bus, connect
from pilotlight_core.host.blobs import FolderBlobs
from pilotlight_core.host.sealed_boxes import seal_box
from pilotlight_core.host.signing import Signer
from pilotlight_core.model import subjects, values
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.agent_questions import SecretsAnswer
from pilotlight_core.model.messages.call_messages import Cancel, Chunk, Ended, Reconcile, Refused, Run, Started, Window
from pilotlight_core.model.messages.device_commands import DeviceCommand
from pilotlight_core.model.messages.logs import LogBatch, LogLine
from pilotlight_core.model.messages.node_messages import (
    STOP_GRACE_S,
    Bind,
    CommandReply,
    ContainerCommand,
    ContainerState,
    Credit,
    Drain,
    HostShare,
    KeepBlanks,
    NodeReport,
)
from pilotlight_core.model.messages.usage import UsageBatch, UsageEvent
from pilotlight_core.model.spec import DEFAULT_BASE, Batching, FileEntry, Manifest, MethodSpec, Mode
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_runtime.containers.blanks.base_environment import BaseEnvironment, own_environment
from pilotlight_runtime.containers.files.trusted_keys import TrustedKeys
from pilotlight_runtime.devices.cpu_slots import CpuDevices
from pilotlight_runtime.devices.device_port import Devices
from pilotlight_runtime.devices.several_devices import SeveralDevices
from pilotlight_runtime.node.agent import Agent, open_agent
from pilotlight_runtime.node.agent_folders import own_folders
from pilotlight_runtime.node.agent_parts import AgentDependencies
from pilotlight_runtime.node.node_reports import NodeIdentity
from pilotlight_runtime.node.notices.notice_port import NoticeSource
from pilotlight_runtime.sandbox.launchers import launcher
from tests.builders.nodes import CEILINGS
from tests.builders.specs import function_spec, id_of, manifest, method
from tests.runtime.local_files import stored_files

REGION = "local"
TENANT = "acme"
WITHIN = 60.0
"""What a step of a test may take on a busy machine."""
HOST = HostShare(cpu_millis=16_000, memory=64 * 2**30)
"""What an agent has to promise, unless a test says otherwise."""


@dataclass(frozen=True, kw_only=True)
class Version:
    """A deployed version."""

    manifest: Manifest
    blob: str

    @property
    def id(self) -> str:
        return id_of(self.manifest)


def generator() -> tuple[MethodSpec, ...]:
    """The methods of a generator function."""
    return (method(mode=Mode.GENERATOR),)


def batched(size: int, wait_ms: float = 20.0) -> tuple[MethodSpec, ...]:
    """The methods of a batched function."""
    return (method(batching=Batching(max_batch_size=size, wait_ms=wait_ms)),)


@dataclass
class Call:
    """What an origin has heard of one call."""

    id: str
    frames: list[Any] = field(default_factory=list)
    last: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    heard: asyncio.Event = field(default_factory=asyncio.Event)

    def hear(self, frame: Any) -> None:
        self.frames.append(frame)
        self.heard.set()
        if isinstance(frame, Ended | Refused) and not self.last.done():
            self.last.set_result(frame)

    @property
    def chunks(self) -> list[Any]:
        """The values of its stream so far."""
        return [values.decode(frame.data) for frame in self.frames if isinstance(frame, Chunk)]

    @property
    def started(self) -> bool:
        return any(isinstance(frame, Started) for frame in self.frames)

    async def wait(self, frames: int) -> None:
        """Until so many frames were heard."""
        async with asyncio.timeout(WITHIN):
            while len(self.frames) < frames:
                self.heard.clear()
                await self.heard.wait()

    async def ended(self) -> Ended:
        """Its last frame, which is no refusal."""
        async with asyncio.timeout(WITHIN):
            frame = await self.last
        assert isinstance(frame, Ended), frame
        return frame

    async def output(self) -> Any:
        """The answer of a call that went well."""
        ended = await self.ended()
        assert ended.outcome == "ok", ended
        return values.decode(ended.output)

    async def refused(self) -> Refused:
        """Its last frame, which is a refusal."""
        async with asyncio.timeout(WITHIN):
            frame = await self.last
        assert isinstance(frame, Refused), frame
        return frame


class Slots(CpuDevices):
    """CPU slots that fail when they are told to: `failed` says why."""

    def __init__(self, slots: int) -> None:
        super().__init__(slots)
        self.failed: dict[str, str] = {}
        self.changed = asyncio.Event()

    def withdrawn(self) -> Mapping[str, str]:
        return self.failed

    async def watch(self, changed: Callable[[], None]) -> None:
        while True:
            await self.changed.wait()
            self.changed.clear()
            changed()


class Harness:
    """Everybody that an agent talks to."""

    def __init__(self, bus: Bus, url: str, folder: Path) -> None:
        self.bus = bus
        self.url = url
        self.folder = folder
        self.node = f"node-{token(6)}"
        self.gateway = f"gw-{token(6)}"
        self.epoch = 7
        self.blobs = FolderBlobs(folder / "blobs")
        self.signer = Signer.load_or_create(folder / "keys")
        self.agent: Agent
        self.devices: Slots
        self.credits: dict[str, list[Credit]] = defaultdict(list)
        self.reports: list[NodeReport] = []
        self.calls: dict[str, Call] = {}
        self._news = asyncio.Event()
        self._numbers = itertools.count(1)
        self._versions: dict[str, str] = {}

    async def give_secrets(self, answer: SecretsAnswer, **given: str) -> None:
        """Answer the agent's questions for secrets as a gateway does: with these values, or else as `answer` says."""

        def on_question(_subject: str, message: Any, reply: str) -> None:
            box = seal_box(message.public_key, msgspec.msgpack.encode(given), message.container) if given else b""
            self.bus.publish_nowait(reply, msgspec.structs.replace(answer, sealed=box))

        await self.bus.subscribe(subjects.secrets(REGION, self.node), on_question)
        await self.bus.flush()

    async def listen(self) -> None:
        """Hear what the agent says."""
        await self.bus.subscribe(subjects.credit(REGION), self._on_credit)
        await self.bus.subscribe(subjects.beat(REGION, self.node), self._on_report)
        await self.bus.subscribe(subjects.reply(REGION, self.gateway), self._on_frame)
        await self.bus.flush()

    def _on_credit(self, _subject: str, message: Any, _reply: str) -> None:
        if message.node == self.node:
            self.credits[message.container].append(message)
            self._news.set()

    def _on_report(self, _subject: str, message: Any, _reply: str) -> None:
        self.reports.append(message)
        self._news.set()

    def _on_frame(self, _subject: str, message: Any, _reply: str) -> None:
        if message.call_id in self.calls:
            self.calls[message.call_id].hear(message)

    # -- the controller -----------------------------------------------------------------------------------------

    async def deploy(
        self,
        source: str,
        *,
        tenant: str = TENANT,
        files: dict[str, str] | None = None,
        base: str = DEFAULT_BASE,
        **spec: Any,
    ) -> Version:
        """Sign and store a version whose module `app` is `source`; its function is `f`."""
        entries = []
        for path, text in {"app.py": textwrap.dedent(source), **(files or {})}.items():
            data = text.encode()
            digest = hashlib.sha256(data).hexdigest()
            await self.blobs.put(tenant, digest, data)
            entries.append(FileEntry(path, digest, len(data)))
        return await self.store(manifest(function_spec("f", **spec), *entries, tenant=tenant, app="demo", base=base))

    async def store(self, manifest: Manifest, *, signer: Signer | None = None) -> Version:
        """Sign and store a manifest."""
        blob = msgspec.msgpack.encode((signer or self.signer).sign(manifest))
        digest = hashlib.sha256(blob).hexdigest()
        await self.blobs.put(manifest.tenant, digest, blob)
        return Version(manifest=manifest, blob=digest)

    async def command(self, command: ContainerCommand | DeviceCommand | KeepBlanks) -> CommandReply:
        """Send a command and return the agent's reply."""
        reply = await self.bus.request(subjects.command(REGION, self.node), command, WITHIN)
        assert isinstance(reply, CommandReply)
        return reply

    def bind_of(self, version: Version, slice_id: str = "cpu-0", **more: Any) -> Bind:
        """A bind command for a new container."""
        spec = version.manifest.spec
        share = HostShare(cpu_millis=spec.cpu_millis, memory=spec.memory)
        fields = {"epoch": self.epoch, "container": f"c-{token(8)}", "host": share, **more}
        return Bind(
            version=version.id,
            tenant=version.manifest.tenant,
            manifest_sha256=version.blob,
            slice=slice_id,
            **fields,
        )

    async def bind(
        self,
        version: Version,
        slice_id: str = "cpu-0",
        state: ContainerState = ContainerState.READY,
        within: float = WITHIN,
        **more: Any,
    ) -> str:
        """Bind a version and wait until the container is in a state; returns its id.

        A slice is taken until its sandbox has ended, a moment after the container is gone; then it is tried again.
        """
        bind = self.bind_of(version, slice_id, **more)
        self._versions[bind.container] = version.id
        async with asyncio.timeout(WITHIN):
            while (reply := await self.command(bind)).reason == "slice_taken":
                await self.news()
        assert reply.ok, reply
        await self.credit(bind.container, state, within)
        return bind.container

    def remember(self, container: str, like: str) -> None:
        """Let `run` know a container that was never bound."""
        self._versions[container] = self._versions[like]

    async def drain(self, container: str, within_ms: float = 5_000) -> CommandReply:
        """Tell a container to end in order."""
        return await self.command(Drain(epoch=self.epoch, container=container, within_ms=within_ms))

    async def credit(self, container: str, state: ContainerState, within: float = WITHIN) -> Credit:
        """The first credit of the container in that state."""
        async with asyncio.timeout(within):
            while True:
                found = [credit for credit in self.credits[container] if credit.state is state]
                if found:
                    return found[0]
                gone = [credit for credit in self.credits[container] if credit.state is ContainerState.GONE]
                assert not gone, gone
                await self.news()

    async def news(self) -> None:
        """Until something is heard."""
        self._news.clear()
        await self._news.wait()

    async def report(self, condition: Any) -> NodeReport:
        """The next report that fulfils a condition."""
        async with asyncio.timeout(WITHIN):
            while not self.reports or not condition(self.reports[-1]):
                await self.news()
        return self.reports[-1]

    # -- the origin, which is its own home ----------------------------------------------------------------------

    def run(self, container: str, _run: dict[str, Any] | None = None, **arguments: Any) -> Call:
        """Send a granted call; `_run` are fields of the Run to set otherwise."""
        call = Call(id=f"call_{token(12)}")
        fields: dict[str, Any] = {
            "call_id": call.id,
            "tenant": TENANT,
            "version": self._versions[container],
            "container": container,
            "method": "",
            "epoch": self.epoch,
            "grant_number": next(self._numbers),
            "gateway": self.gateway,
            "home": self.gateway,
            "start_within_ms": 10_000.0,
            "timeout_ms": 20_000.0,
            "input": values.encode(arguments),
            "tell_start": True,
            **(_run or {}),
        }
        call.id = fields["call_id"]
        self.calls[call.id] = call
        self.bus.publish_nowait(subjects.run(REGION, self.node, self.reports[-1].instance), Run(**fields))
        return call

    def expect(self, call_id: str) -> Call:
        """Hear what is said of a call that was not sent."""
        call = self.calls[call_id] = Call(id=call_id)
        return call

    async def listen_as(self, gateway: str) -> None:
        """Hear what is said to another gateway."""
        await self.bus.subscribe(subjects.reply(REGION, gateway), self._on_frame)

    async def usage(self, condition: Any) -> list[UsageEvent]:
        """This node's stored usage, as soon as it fulfils a condition; events of one slice in order."""
        events: list[UsageEvent] = []
        async with asyncio.timeout(WITHIN):
            async for stored in self.bus.read_stream(subjects.USAGE_STREAM, "usage.>", follow=True):
                if not isinstance(stored.message, UsageBatch):
                    continue  # a binding of a controller
                events += [event for event in stored.message.events if event.node == self.node]
                if condition(events):
                    break
        return sorted(events, key=lambda event: (event.slice, event.t0))

    def control(self, message: Cancel | Reconcile | Window) -> None:
        """Say something of a call."""
        self.bus.publish_nowait(subjects.control(REGION, self.node), message)

    async def logs(self, condition: Any) -> list[LogLine]:
        """The function's log lines, as soon as they fulfil a condition."""
        lines: list[LogLine] = []
        async with asyncio.timeout(WITHIN):
            topic = subjects.logs(REGION, self.node, TENANT, "demo", "f")
            async for stored in self.bus.read_stream(subjects.LOGS_STREAM, topic, follow=True):
                assert isinstance(stored.message, LogBatch)
                lines += [line for line in stored.message.lines if line.container in self._versions]
                if condition(lines):
                    break
        return lines


@asynccontextmanager
async def everybody(url: str, folder: Path) -> AsyncIterator[Harness]:
    """Everybody that an agent talks to, without an agent yet."""
    async with connect(url, name="harness") as bus:
        world = Harness(bus, url, folder)
        await world.listen()
        yield world


@asynccontextmanager
async def harness(
    url: str,
    folder: Path,
    *,
    sandbox: str = "process",
    cpu_slots: int = 2,
    blanks: int = 1,
    bases: tuple[BaseEnvironment, ...] = (),
    warm_memory: int = 0,
) -> AsyncIterator[Harness]:
    """An agent that runs, and everybody it talks to."""
    async with (
        everybody(url, folder) as world,
        agent(world, sandbox=sandbox, cpu_slots=cpu_slots, blanks=blanks, bases=bases, warm_memory=warm_memory),
    ):
        yield world


class QuietServer(uvicorn.Server):
    """Leaves signals to the test run."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def listener() -> AsyncIterator[LargeBodies]:
    """An origin's internal listener."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        bodies = LargeBodies(url=f"http://127.0.0.1:{sock.getsockname()[1]}", budget=ByteBudget(limit=10**9))
        server = QuietServer(uvicorn.Config(bodies, lifespan="off", log_config=None))
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[sock]))
            try:
                yield bodies
            finally:
                server.should_exit = True


@asynccontextmanager
async def agent(
    world: Harness,
    *,
    sandbox: str = "process",
    cpu_slots: int = 2,
    blanks: int = 1,
    gpus: Devices | None = None,
    gpu_blanks: int = 0,
    stop_grace_s: float = STOP_GRACE_S,
    host: HostShare = HOST,
    bases: tuple[BaseEnvironment, ...] = (),
    warm_memory: int = 0,
    notices: NoticeSource | None = None,
) -> AsyncIterator[Agent]:
    """Run an agent for the harness's node until the block ends; with `gpus` beside its CPU slots."""
    stop = asyncio.Event()
    async with AsyncExitStack() as stack:
        folders = stack.enter_context(own_folders(world.folder, world.node))
        started = launcher(sandbox)
        stack.callback(started.close)
        bus = await stack.enter_async_context(connect(world.url, name="agent"))
        world.devices = Slots(cpu_slots)
        needs = AgentDependencies(
            identity=NodeIdentity(node=world.node, instance=token(), region=REGION, zone="local-a", sandbox=sandbox),
            bus=bus,
            files=stored_files(world.blobs),
            verifier=TrustedKeys(world.folder / "keys"),
            launcher=started,
            devices=SeveralDevices(world.devices, gpus) if gpus else world.devices,
            bases=(own_environment(preimport=""), *bases),
            ceilings=CEILINGS,
            folders=folders,
            blanks=blanks,
            gpu_blanks=gpu_blanks,
            stop_grace_s=stop_grace_s,
            host=host,
            warm_memory=warm_memory,
            notices=notices,
        )
        opened: asyncio.Future[Agent] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            async with open_agent(needs) as made:
                opened.set_result(made)
                await made.run(stop)

        async with asyncio.TaskGroup() as group:
            running = group.create_task(run())
            world.agent = made = await opened
            await made.up.wait()
            try:
                yield made
                made.check_integrity()
            finally:
                stop.set()
                await asyncio.wait([running])


def since(began: float) -> float:
    """Milliseconds."""
    return (time.monotonic() - began) * 1000
