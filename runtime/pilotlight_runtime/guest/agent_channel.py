"""The guest's end of the socket: blocking sends from any thread, batched reads by one."""

from __future__ import annotations

import os
import select
import socket
import threading
from typing import Any

from pilotlight_runtime.guest.frames import FrameDecoder, FromAgent, GuestFrame, encode_payload, header

ONE_PIECE = 64 * 1024
"""Up to here, joining header and payload costs less than sending two pieces."""


class AgentGone(ConnectionError):
    """The agent has closed its end."""


class Channel:
    """Frames to and from the agent. A send blocks while the agent does not read; it always reads."""

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(None)
        sock.set_inheritable(False)
        self._socket = sock
        self._inbox = FrameDecoder(FromAgent)
        self._backlog: list[Any] = []
        self._lock = threading.Lock()
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        # A tenant's fork inherits the socket: its child must never answer.
        os.register_at_fork(after_in_child=self._leave_to_parent)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, frame: GuestFrame) -> None:
        """Raises: FrameTooLarge, AgentGone (also in the child of a fork); nothing was sent."""
        payload = encode_payload(frame)
        head = header(len(payload))
        try:
            with self._lock:
                if len(payload) <= ONE_PIECE:
                    self._socket.sendall(head + payload)
                else:
                    sent = self._socket.sendmsg((head, payload))
                    self._socket.sendall(memoryview(payload)[sent - len(head) :])
        except OSError as error:
            raise AgentGone(str(error)) from error

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
        self._socket.close()
