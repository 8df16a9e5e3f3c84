"""The guest's end of the socket: blocking sends from any thread, batched reads by one."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections import deque
from contextlib import suppress
from typing import Any

from pilotlight_runtime.guest.frames import (
    CHUNK_GROUP,
    GROUP,
    GROUP_BYTES,
    LEFT_BYTES,
    ChunkOut,
    FrameDecoder,
    FromAgent,
    GuestFrame,
    encode,
    encode_payload,
    header,
    together,
)

EXIT_WAIT_S = 0.1
"""For another thread's send, when the process ends."""


class AgentGone(ConnectionError):
    """The agent has closed its end."""


class Channel:
    """Frames to and from the agent, in order. A send blocks while the agent does not read; it always reads."""

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(None)
        sock.set_inheritable(False)
        self._socket = sock
        self._inbox = FrameDecoder(FromAgent)
        self._backlog: list[Any] = []
        self._lock = threading.Lock()
        self._group: deque[bytes | ChunkOut] = deque()
        """Frames that wait to be sent, in order: for the next flush, or for the thread that sends."""
        self.joins_chunks = False
        """Whether chunks that go together are one frame; agents of before take each by itself."""
        self._group_bytes = 0
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        # A tenant's fork inherits the socket: its child must never answer.
        os.register_at_fork(after_in_child=self._leave_to_parent)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, frame: GuestFrame) -> None:
        """Send a frame behind those that are kept.

        While another thread sends, a small frame is left to it, so that threads which have something at the same time
        share writes and do not wait for each other; from GROUP frames on they do.

        Raises: FrameTooLarge, AgentGone (also in the child of a fork); nothing was sent.
        """
        payload = encode_payload(frame)
        head = header(len(payload))
        if len(payload) <= GROUP_BYTES:
            self._group.append(head + payload)
            self._send_group(wait=len(self._group) >= GROUP)
        else:
            self._send_large(head, payload)

    def leave(self, frame: GuestFrame) -> bool:
        """Keep a small frame until the next `send_left`, `send` or `flush`; False: it is sent, with all before it.

        From CHUNK_GROUP frames on they are sent. Any thread may call it; raises as `send`.
        """
        if self.joins_chunks and type(frame) is ChunkOut and len(frame.data) <= LEFT_BYTES:
            self._group.append(frame)
        else:
            payload = encode_payload(frame)
            head = header(len(payload))
            if len(payload) > LEFT_BYTES:
                self._send_large(head, payload)
                return False
            self._group.append(head + payload)
        if len(self._group) < CHUNK_GROUP:
            return True
        self._send_group(wait=True)
        return False

    def send_left(self) -> None:
        """Send what was left, unless another thread sends: that does it."""
        self._send_group(wait=False)

    def keep(self, frame: GuestFrame) -> None:
        """Send a frame with the next `flush` or `send`, in one piece with others; a full group goes at once.

        Raises: as `send`; FrameTooLarge: nothing was kept.
        """
        data = encode(frame)
        self._group.append(data)
        self._group_bytes += len(data)
        if len(self._group) >= GROUP or self._group_bytes >= GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Return once all that was sent or kept before is out, also what another thread sends; raises AgentGone."""
        try:
            with self._lock:
                self._write_group()
        except OSError as error:
            raise AgentGone(str(error)) from error
        self._send_group(wait=False)  # what other threads have left to this one

    def flush_at_exit(self) -> None:
        """Send what is kept, as far as that needs no waiting: the process ends, and a thread of it may be sending."""
        if not self._lock.acquire(timeout=EXIT_WAIT_S):
            return
        with suppress(OSError):
            pieces = [self._group.popleft() for _ in range(len(self._group))]
            self._socket.send(b"".join(joined(pieces)), socket.MSG_DONTWAIT)
        self._lock.release()

    def _send_group(self, *, wait: bool) -> None:
        """Send what is kept. Unless it is to `wait`, a thread that sends does it: that looks again when it is done."""
        while self._group and self._lock.acquire(blocking=wait):
            try:
                self._write_group()
            except OSError as error:
                raise AgentGone(str(error)) from error
            finally:
                self._lock.release()

    def _send_large(self, head: bytes, payload: bytes) -> None:
        try:
            with self._lock:
                self._write_group()
                sent = self._socket.sendmsg((head, payload))
                self._socket.sendall(memoryview(payload)[sent - len(head) :])
        except OSError as error:
            raise AgentGone(str(error)) from error
        self._send_group(wait=False)  # what other threads have left to this one

    def _write_group(self) -> None:
        """With the lock: nobody else takes frames out."""
        group = self._group
        pieces = joined([group.popleft() for _ in range(len(group))])
        self._group_bytes = 0
        if pieces:
            self._socket.sendall(pieces[0] if len(pieces) == 1 else b"".join(pieces))

    def receive(self) -> list[Any]:
        """Wait for the next frames, at least one; raises AgentGone and MalformedFrame, as all reads do."""
        frames = self._take_backlog()
        while not frames:
            frames = self._read()
        return frames

    def receive_one(self) -> Any:
        first, *self._backlog = self.receive()
        return first

    def receive_nowait(self) -> list[Any]:
        """The frames that have arrived, perhaps none."""
        frames = self._take_backlog()
        if self._poll.poll(0):  # a tenth of the cost of a recv that would block
            frames += self._read()
        return frames

    def wait_readable(self, seconds: float) -> bool:
        """Wait for frames; False if none come in time."""
        return bool(self._backlog) or bool(self._poll.poll(max(0.0, seconds) * 1000))

    def _take_backlog(self) -> list[Any]:
        frames, self._backlog = self._backlog, []
        return frames

    def _read(self) -> list[Any]:
        try:
            count = self._socket.recv_into(self._inbox.space())
        except OSError as error:
            raise AgentGone(str(error)) from error
        if not count:
            raise AgentGone("the agent has closed the connection")
        return self._inbox.filled(count)

    def _leave_to_parent(self) -> None:
        self._lock = threading.Lock()
        self._group = deque()
        self._socket.close()


def joined(pieces: list[bytes | ChunkOut]) -> list[bytes]:
    """Frames as they are sent: chunks that follow each other as one."""
    frames: list[bytes] = []
    chunks: list[ChunkOut] = []
    for piece in pieces:
        if type(piece) is ChunkOut:
            chunks.append(piece)
            if len(chunks) < CHUNK_GROUP:
                continue
        if chunks:
            frames.append(encode(together(chunks)))
            chunks = []
        if type(piece) is bytes:
            frames.append(piece)
    if chunks:
        frames.append(encode(together(chunks)))
    return frames
