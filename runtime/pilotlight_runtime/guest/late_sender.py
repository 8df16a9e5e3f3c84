"""A thread that sends what was left to it, if nobody else does before.

A function that yields chunks quickly leaves small ones to be sent together: a write costs more than such a chunk. But
nobody knows whether it will yield again soon, or give way to its event loop. So this thread looks after a while. If the
function waits for something then, it has the interpreter at once, and else within its switch interval of some
milliseconds; nothing waits longer.
"""

from __future__ import annotations

import threading
import time
from queue import SimpleQueue

from pilotlight_runtime.guest import exits
from pilotlight_runtime.guest.agent_channel import Channel
from pilotlight_runtime.guest.frames import GuestFrame


class LateSender:
    """Sends frames soon: at the latest after `within_s`, and what the interpreter needs for a change of threads.

    Any thread may call it; the first frame starts its own.
    """

    def __init__(self, channel: Channel, within_s: float = 0.0) -> None:
        self._channel = channel
        self._within_s = within_s
        self._wishes: SimpleQueue[None] = SimpleQueue()
        self._is_awake = False
        """Whether its thread will send after what was left to it last."""
        self._has_thread = False
        self._starting = threading.Lock()

    def send(self, frame: GuestFrame) -> None:
        """Send a frame with those that follow soon, in order with all others; raises as `Channel.send`."""
        if not self._channel.leave(frame) or self._is_awake:
            return
        if self._has_thread or self._start():
            self._is_awake = True
            self._wishes.put(None)
        else:
            self._channel.send_left()

    def _start(self) -> bool:
        with self._starting:
            if not self._has_thread:
                try:
                    threading.Thread(target=self._run, name="pilotlight", daemon=True).start()
                except RuntimeError:  # the sandbox allows no more threads
                    return False
                self._has_thread = True
        return True

    def _run(self) -> None:
        with exits.with_agent():
            while True:
                self._wishes.get()
                if self._within_s:
                    time.sleep(self._within_s)
                self._is_awake = False  # before it sends: what is left from here on needs another wish
                self._channel.send_left()
