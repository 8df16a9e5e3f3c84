"""What stands for the cycle of a request in the server's eyes when there is none."""

from __future__ import annotations


class NoEvent:
    """In place of an event that nobody waits for."""

    def set(self) -> None: ...


class WholeCycle:
    """What uvicorn takes for the cycle of a request that was taken whole: one for all those of a connection."""

    __slots__ = ("disconnected", "keep_alive", "response_complete")
    message_event = NoEvent()

    def __init__(self) -> None:
        self.disconnected = False
        self.keep_alive = True
        self.response_complete = True
