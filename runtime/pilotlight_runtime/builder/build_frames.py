"""The frames between an agent and a builder: u32 little-endian length, then the msgpack of one tagged array.

agent                         builder
  | ---- BuildJob -------------> |     once in its life
  | <---- BuiltPiece* ---------- |     of a build: the files, each in pieces one after the other
  | <---- BuildEnd ------------- |     the lock, or why there is none; then the process ends
"""

from __future__ import annotations

import socket
import struct
from typing import Annotated

import msgspec
from msgspec import Meta

PIECE_BYTES = 2**20
MAX_BUILD_FRAME = 4 * 2**20
"""Bytes; the text of a lock is the largest."""
MAX_WORDS = 8_000
"""Characters of what the resolver says."""
_HEADER = struct.Struct("<I")


class BuildFrame(msgspec.Struct, frozen=True, kw_only=True, array_like=True, tag=True, gc=False):
    """The base of all."""


class BuildJob(BuildFrame, frozen=True, kw_only=True):
    """Lock `requirements`, or install what stands in `lock`."""

    uv: str
    """Its path inside."""
    python: str
    """The interpreter of the base environment."""
    index: str
    """The URL of the package index."""
    network: str
    """The folder with the socket of the proxy."""
    certificates: str = ""
    """The file of authorities (PEM) of the index; "": those that uv knows."""
    requirements: tuple[str, ...] = ()
    pins: str = ""
    """Versions to which the lock is held, as constraints; "": none."""
    lock: str = ""
    """"": the job is to lock."""


class BuiltPiece(BuildFrame, frozen=True, kw_only=True):
    """The next bytes of a file."""

    path: Annotated[str, Meta(max_length=4096)]
    """Below the folder of the environment."""
    data: bytes
    is_last: bool
    is_program: bool = False


class BuildEnd(BuildFrame, frozen=True, kw_only=True):
    """The job is done, or has failed."""

    lock: str = ""
    """What uv has printed, for a job to lock."""
    bases: tuple[str, ...] = ()
    """The packages of the base environment, which are no part of the lock."""
    error: str = ""
    """The resolver's words; "": it is done."""
    is_unanswered: bool = False
    """Whether the index did not answer, so that it may be otherwise later."""


class BadBuild(Exception):
    """The other end sends what it may not, or has gone; the message says which."""


_encoder = msgspec.msgpack.Encoder()
_from_builder: msgspec.msgpack.Decoder[BuiltPiece | BuildEnd] = msgspec.msgpack.Decoder(BuiltPiece | BuildEnd)
_from_agent = msgspec.msgpack.Decoder(BuildJob)


def send_frame(to: socket.socket, frame: BuildFrame) -> None:
    """Write one frame, however long that takes. Raises OSError."""
    data = _encoder.encode(frame)
    to.sendall(_HEADER.pack(len(data)) + data)


def next_job(source: socket.socket) -> BuildJob:
    """The one frame of the agent. Raises BadBuild."""
    return _from_agent.decode(_next(source))


def next_answer(source: socket.socket) -> BuiltPiece | BuildEnd:
    """The next frame of a builder, which nobody has checked.

    Raises:
        BadBuild: it has gone, or what comes is no frame.
    """
    try:
        return _from_builder.decode(_next(source))
    except msgspec.DecodeError as error:
        raise BadBuild(f"the builder says what cannot be read: {error}") from None


def _next(source: socket.socket) -> bytes:
    (size,) = _HEADER.unpack(_exactly(source, _HEADER.size))
    if size > MAX_BUILD_FRAME:
        raise BadBuild(f"a frame of {size} bytes is too large")
    return _exactly(source, size)


def _exactly(source: socket.socket, size: int) -> bytes:
    space = bytearray(size)
    view = memoryview(space)
    while view:
        try:
            count = source.recv_into(view)
        except OSError as error:
            raise BadBuild(f"the other end is gone: {error}") from None
        if not count:
            raise BadBuild("the other end is gone")
        view = view[count:]
    return bytes(space)
