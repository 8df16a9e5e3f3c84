"""The frames between an agent and a guest: u32 little-endian length, then the msgpack of one tagged array.

    agent                         guest
      | <---- Hello ---------------- |     a blank is ready
      | ---- Load -----------------> |     once in its life
      | <---- Step* ---------------- |     import, enter, compile, warmup, check
      | <---- CompilePiece* -------- |     what was compiled, each piece once CompilePieceTaken says so
      | <---- Loaded | LoadError --- |
      | ---- Invoke ---------------> |     at most `max_inputs` run; more wait in order
      | <---- ChunkOut* ------------ |     at most `window` ahead of the last WindowUpdate
      | <---- ChunksOut* ----------- |     several of them, if its Load says that the agent takes them
      | <---- CheckpointOut* ------- |     between its chunks, if its Invoke is resumable
      | <---- Result --------------- |     exactly one per Invoke
      | ---- InvokeBatch ----------> |
      | <---- BatchResult ---------- |     exactly one, a GuestItemResult per item in order
      | ---- CancelCall -----------> |     the call still gets its one Result
      | <---- NestedCall* ---------- |     a call that runs makes another; NestedLeave takes it back
      | ---- NestedResult ---------> |     exactly one per NestedCall
      | ---- Park ----------------> |     while no call runs, of a guest whose Loaded says that it parks; Unpark later
      | <---- HooksRan ------------- |     exactly one per Park and Unpark
      | ---- Drain ----------------> |     once: the node is taken away; calls go on, drain hooks run beside them
      | <---- Drained -------------- |     they have ended
      | <---- EngineReport* -------- |     how full it is, if its Load says that the agent takes them
      | ---- Leave ----------------> |     exit hooks run, then the process ends

The two ends may come from two installations: that of the agent, and that of a base environment. Frames are positional,
so fields are only appended, with a default that says what older ends meant, and a new frame is sent only to an end that
knows it: Hello says the guest's `FRAMES`. What a guest sends is untrusted: it is decoded by type and bounded in size.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import msgspec

from pilotlight_core.model.bounded import Count, ShortText
from pilotlight_core.model.engines.call_facts import CallFacts
from pilotlight_core.model.messages.call_messages import Outcome, RemoteError
from pilotlight_core.model.messages.engine_report import EngineReport
from pilotlight_core.model.spec import FunctionSpec

FRAMES = (1, 6)
"""The version of these frames. The first number changes with what older ends cannot read, the second with what they
ignore."""
KNOWS_NETWORK = (1, 1)
KNOWS_SECRETS = (1, 3)
KNOWS_REHEARSAL = (1, 4)
KNOWS_PACKAGES = (1, 4)
KNOWS_RESUME = (1, 4)
KNOWS_DRAINS = (1, 4)
KNOWS_ENGINE = (1, 5)
MAX_FRAME = 64 * 2**20
"""Bytes. A 10 MB input in a batch of several fits; a larger answer is `bad_output`."""
MAX_VALUE = 32 * 2**20
"""Bytes of one encoded answer, and of a batch's answers together."""
MAX_CHUNK = 768 * 1024
"""Bytes of one encoded chunk of a stream: it must fit one message of the bus."""
SMALL_FRAME = 256 * 1024
"""Bytes of a frame without an answer. An error's texts are bounded to a fraction of it."""
GROUP = 8
"""The most frames of one turn of an event loop that go together: the other end works while this one goes on."""
CHUNK_GROUP = 64
"""The most small chunks that go together: of streams nobody waits for one to send the next. Each group wakes an agent
and a gateway, whose code has left the processor's caches meanwhile."""
RUN_CHUNKS = 32
"""The most of them that are of one stream: agents of before take no more."""
GROUP_BYTES = 64 * 1024
"""A group of so many bytes is written at once. Up to here joining pieces costs less than sending them one by one."""
LEFT_BYTES = GROUP_BYTES // RUN_CHUNKS
"""Of a frame, or a chunk, that goes with others: what is larger costs more than its write."""
HEADER = struct.Struct("<I")
STEPS = ("import", "enter", "compile", "warmup", "check")
"""Of becoming ready. What torch compiles meanwhile is a step of its own, and not counted in the others."""
COMPILE_PIECE = 128 * 1024
"""Bytes of one piece of a file that a compiler has left."""
CHECK_METHOD = ".check"
"""The method of an Invoke that has the guest check itself again; no method of a tenant has a dot in its name."""
KEPT_MEMORY = 64 * 1024
"""Bytes that a decoder keeps between frames; larger frames borrow memory."""
LEAST_TAIL = 8 * 1024
"""With less space than this behind the last byte, the rest is moved to the front."""
GROWTH = 16
"""A frame gets at most this many times the filled memory, so that a false header costs nothing."""


class GuestFrame(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag=True, gc=False):
    """The base of all frames."""


# --- agent -> guest ----------------------------------------------------------------------------------------------


class Load(GuestFrame, frozen=True, kw_only=True):
    """Become this function. `env` is the agent's (CUDA_VISIBLE_DEVICES, …) and wins over the spec's."""

    spec: FunctionSpec
    root: str = "/app"
    """Folder of the tenant's files: first on the module path."""
    env: dict[str, str] = {}
    network: str = ""
    """Folder with the socket of the proxy; "": there is no way out. Guests of 1.0 do not know it."""
    nested: int = 0
    """The most calls that one of its calls may wait for at a time; 0: this agent knows none."""
    secrets: dict[str, str] = {}
    """Variable, or file below /run/secrets, and the value there."""
    compiled: str = ""
    """Folder of what containers of the version have compiled here before."""
    compile_into: str = ""
    """Folder for what compilers keep, which becomes CompilePieces; "": this agent takes none."""
    packages: str = ""
    """Folder of packages that come before those of the base environment; "": there are none."""
    takes_reports: bool = False
    """Whether the agent takes EngineReportOut."""
    takes_chunks: bool = False
    """Whether the agent takes ChunksOut."""


class StreamStart(msgspec.Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """Where a resumable stream begins."""

    after: int = 0
    """The number of the last chunk that an earlier container sent, and that is in the state."""
    state: bytes = b""
    """The msgpack of what its last checkpoint saved; b"": it begins."""


class Invoke(GuestFrame, frozen=True, kw_only=True):
    """Run one call. `input` is the msgpack of the object of named arguments."""

    call_id: str
    method: str = ""
    """A name of the spec's methods."""
    input: bytes = b""
    window: int = 256
    """The most chunks that a stream may be ahead of the last WindowUpdate; see `chunks_ahead`."""
    resume: StreamStart | None = None
    """Of a resumable stream, whose checkpoints the agent takes."""
    facts: CallFacts | None = None
    """What the platform says of the call to an engine."""
    traceparent: str = ""
    """As the call came; "": it begins a trace, whose id is made of the call's."""


class InvokeBatch(GuestFrame, frozen=True, kw_only=True):
    """Run one batch of a batched method."""

    batch: int
    method: str
    items: tuple[tuple[str, bytes], ...]
    """(call, input) in grant order."""
    traceparents: tuple[str, ...] = ()
    """Of each, as `Invoke.traceparent`; (): none came with one."""


class CancelCall(GuestFrame, frozen=True, kw_only=True):
    """Cancel a call; unknown calls are ignored."""

    call_id: str


class WindowUpdate(GuestFrame, frozen=True, kw_only=True):
    """All chunks of the call up to `upto` have been passed on."""

    call_id: str
    upto: int


class NestedResult(GuestFrame, frozen=True, kw_only=True):
    """The one answer to a NestedCall: the body of its answer as over HTTP in msgpack, or its problem in JSON."""

    number: int
    body: bytes = b""
    problem: bytes = b""


class ParkGuest(GuestFrame, frozen=True, kw_only=True, tag="Park"):
    """Run the hooks that leave the device. Nothing else is sent until they have ended."""


class UnparkGuest(GuestFrame, frozen=True, kw_only=True, tag="Unpark"):
    """Run the hooks that return to the device."""


class CompilePieceTaken(GuestFrame, frozen=True, kw_only=True):
    """The agent has the last piece, and takes another one if it says so."""

    go_on: bool = True


class DrainGuest(GuestFrame, frozen=True, kw_only=True, tag="Drain"):
    """Run the drain hooks: the node is taken away. Calls go on, and no new ones come."""


class Leave(GuestFrame, frozen=True, kw_only=True):
    """Run the exit hooks and end, within a time that the agent bounds."""


# --- guest -> agent ----------------------------------------------------------------------------------------------


class Hello(GuestFrame, frozen=True, kw_only=True):
    """A blank is ready for its Load: its pid in the sandbox, and the milliseconds of its start."""

    pid: int
    ms: float
    modules: tuple[str, ...] = ()
    """The modules of PL_PREIMPORT that were found."""
    frames: tuple[int, int] = (0, 0)
    """Its `FRAMES`. Those of release 0.1 say none, and read no specification with fields that came later."""
    cuda: bool = False
    """Whether what it has imported has opened CUDA; guests of before do not say."""


class LoadStep(GuestFrame, frozen=True, kw_only=True, tag="Step"):
    name: str
    ms: float


class CompilePiece(GuestFrame, frozen=True, kw_only=True):
    """A piece of a file that a compiler has left, in order; the next one waits for CompilePieceTaken."""

    path: ShortText
    """Below `Load.compile_into`, with slashes."""
    data: bytes
    ends: bool
    """Whether it is the file's last."""


class Loaded(GuestFrame, frozen=True, kw_only=True):
    """The guest takes calls."""

    parks: bool = False
    """Whether the function has hooks for `ParkGuest` and `UnparkGuest`."""


class HooksRan(GuestFrame, frozen=True, kw_only=True):
    """The one answer to a ParkGuest or an UnparkGuest."""

    error: RemoteError | None = None


class DrainHooksEnded(GuestFrame, frozen=True, kw_only=True, tag="Drained"):
    """The drain hooks have run."""


class LoadError(GuestFrame, frozen=True, kw_only=True):
    """The function could not be loaded; the guest ends by itself."""

    step: str
    error: RemoteError


class ChunkOut(GuestFrame, frozen=True, kw_only=True):
    """One piece of a stream: the msgpack of the value; `seq` rises by one from 1."""

    call_id: str
    seq: int
    data: bytes


class ChunkRun(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Chunks of one stream that follow each other: at least one, at most RUN_CHUNKS, each of LEFT_BYTES at most."""

    call_id: str
    seq: int
    """Of the first one."""
    data: tuple[bytes, ...]


class ChunksOut(GuestFrame, frozen=True, kw_only=True):
    """Pieces of streams that go together, in the order in which they came."""

    runs: tuple[ChunkRun, ...]


class CheckpointOut(GuestFrame, frozen=True, kw_only=True):
    """The function has saved its state behind chunk `seq`, the last one that was sent: `state` is msgpack."""

    call_id: str
    seq: Count
    state: bytes


class EngineReportOut(GuestFrame, frozen=True, kw_only=True, tag="EngineReport"):
    """How the engine of an engine function is: each second in which it works, and when it comes to rest."""

    report: EngineReport


class Result(GuestFrame, frozen=True, kw_only=True):
    """The one answer to an Invoke, which occupies nothing in the guest any more."""

    call_id: str
    outcome: Outcome = Outcome.OK
    """OK, RAISED, BAD_OUTPUT or CANCELLED."""
    output: bytes = b""
    """msgpack of the value; of None for a stream."""
    error: RemoteError | None = None
    execute_ns: int = 0
    """From the first line of the tenant's code to its last."""
    started: bool = True
    """False: it was cancelled before the tenant's code got it."""
    last_seq: int = 0
    """The number of chunks of a stream."""
    units: dict[str, int] | None = None
    """What the function counted, by `CallUnit`."""


class GuestItemResult(msgspec.Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    call_id: str
    outcome: Outcome = Outcome.OK
    output: bytes = b""
    error: RemoteError | None = None
    units: dict[str, int] | None = None


class BatchResult(GuestFrame, frozen=True, kw_only=True):
    """The one answer to an InvokeBatch, in the order of its items."""

    batch: int
    results: tuple[GuestItemResult, ...]
    execute_ns: int = 0
    whole: bool = False
    """The call failed as a whole: every item has the same error, and each might succeed alone."""
    started: bool = True
    """False: all its items were cancelled before the tenant's code got them."""


class NestedCall(GuestFrame, frozen=True, kw_only=True):
    """The call `call_id`, which runs here, calls a function; `request` is as its body over HTTP, in msgpack."""

    call_id: str
    number: Count
    """Of all that this guest makes."""
    function: ShortText
    of_app: bool = False
    """Whether the function belongs to this guest's own app, however that is called on the platform."""
    request: bytes = b""


class NestedLeave(GuestFrame, frozen=True, kw_only=True):
    """The answer of a NestedCall is not wanted any more; it still comes."""

    number: Count


GuestWork = Invoke | InvokeBatch
FromAgent = (
    Load
    | Invoke
    | InvokeBatch
    | CancelCall
    | WindowUpdate
    | NestedResult
    | CompilePieceTaken
    | DrainGuest
    | Leave
    | ParkGuest
    | UnparkGuest
)
FromGuest = (
    Hello
    | LoadStep
    | CompilePiece
    | Loaded
    | LoadError
    | ChunkOut
    | ChunksOut
    | CheckpointOut
    | Result
    | BatchResult
    | NestedCall
    | NestedLeave
    | HooksRan
    | DrainHooksEnded
    | EngineReportOut
)

_encoder = msgspec.msgpack.Encoder()
_pack = HEADER.pack
encode_payload = _encoder.encode
"""Without the header."""


def together(chunks: Sequence[ChunkOut]) -> ChunksOut:
    """Chunks as one frame."""
    runs: list[ChunkRun] = []
    run: list[bytes] = []
    first = chunks[0]
    for chunk in chunks:
        follows = chunk.call_id == first.call_id and chunk.seq == first.seq + len(run) and len(run) < RUN_CHUNKS
        if run and not follows:
            runs.append(ChunkRun(first.call_id, first.seq, tuple(run)))
            first, run = chunk, []
        run.append(chunk.data)
    runs.append(ChunkRun(first.call_id, first.seq, tuple(run)))
    return ChunksOut(runs=tuple(runs))


def encode(frame: GuestFrame) -> bytes:
    """A whole frame; raises FrameTooLarge."""
    payload = encode_payload(frame)
    if len(payload) > MAX_FRAME:
        raise too_large(len(payload))
    return _pack(len(payload)) + payload


def header(length: int) -> bytes:
    """The four bytes before a payload of `length` bytes; raises FrameTooLarge."""
    if length > MAX_FRAME:
        raise too_large(length)
    return _pack(length)


def too_large(length: int) -> FrameTooLarge:
    return FrameTooLarge(f"a frame of {length} bytes is larger than {MAX_FRAME}")


def decoder_of(family: Any) -> msgspec.msgpack.Decoder[Any]:
    """A decoder of `FromAgent` or `FromGuest`; it raises msgspec.DecodeError."""
    return msgspec.msgpack.Decoder(family)


class MalformedFrame(ValueError):
    """The other end sent no valid frame; what follows cannot be decoded."""


class FrameTooLarge(ValueError):
    """A frame beyond MAX_FRAME."""


class FrameDecoder:
    """Decodes a byte stream: put bytes into `space()`, and `filled(count)` returns the completed frames."""

    def __init__(self, family: Any, *, limit: int = MAX_FRAME) -> None:
        self._decode = decoder_of(family).decode
        self.limit = limit
        """Bytes of the largest frame."""
        self._memory = bytearray(KEPT_MEMORY)
        self._view = memoryview(self._memory)
        self._start = 0
        self._end = 0

    def space(self) -> memoryview:
        """The memory for the next bytes; never empty."""
        return self._view[self._end :]

    def filled(self, count: int) -> list[Any]:
        """The frames that `count` more bytes complete, in order; raises MalformedFrame."""
        end = self._end = self._end + count
        start, wanted, length = self._start, 0, 0
        view, decode = self._view, self._decode
        frames: list[Any] = []
        try:
            while end - start >= HEADER.size:
                (length,) = HEADER.unpack_from(view, start)
                if length > self.limit:
                    raise MalformedFrame(f"a frame of {length} bytes is announced, {self.limit} is the most")
                begin = start + HEADER.size
                if end < begin + length:
                    wanted = HEADER.size + length
                    break
                start = begin + length
                frames.append(decode(view[begin:start]))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedFrame(f"a frame of {length} bytes cannot be read: {error}") from error
        self._start = start
        self._make_space(wanted)
        return frames

    def _make_space(self, wanted: int) -> None:
        held = self._end - self._start
        size = max(KEPT_MEMORY, min(wanted, GROWTH * (held + KEPT_MEMORY)))
        if size > len(self._memory) or (not held and len(self._memory) > KEPT_MEMORY):
            fresh = bytearray(size)
            fresh[:held] = self._view[self._start : self._end]
            self._memory, self._view = fresh, memoryview(fresh)
        elif self._start and (not held or len(self._memory) - self._end < LEAST_TAIL):
            self._view[:held] = self._view[self._start : self._end]
        elif self._end < len(self._memory):
            return
        self._start, self._end = 0, held
