"""The hooks of a class that run when its node is taken away: once, in a thread of their own, beside its calls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from pilotlight_runtime.guest import exits
from pilotlight_runtime.guest.agent_channel import Channel
from pilotlight_runtime.guest.frames import DrainHooksEnded
from pilotlight_runtime.guest.loading import HookRunner, call_hook, reported


class DrainHooks:
    """`hooks` run in their order; what one raises goes into the log, and the next one runs."""

    def __init__(self, channel: Channel, hooks: Sequence[Callable[[], Any]]) -> None:
        self._channel = channel
        self._hooks = hooks
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to run them; repeated, nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="pilotlight-drain", daemon=True)
            self._thread.start()

    def join(self) -> None:
        """Wait until they have ended, if they have begun; the agent bounds that."""
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        with exits.with_agent():
            wait = HookRunner()
            for hook in self._hooks:
                with reported():
                    call_hook(hook, wait)
            self._channel.send(DrainHooksEnded())
            wait.close()
