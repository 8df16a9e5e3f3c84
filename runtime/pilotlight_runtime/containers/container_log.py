"""What the platform says in the log of one container's function."""

from __future__ import annotations

import time

from pilotlight_core.model.messages.logs import LogLine
from pilotlight_core.model.spec import Manifest
from pilotlight_runtime.logs.log_shipper import LogKey, LogShipper
from pilotlight_runtime.logs.log_tap import LogTap


class ContainerLog:
    """`manifest` says whose it is; without it nothing is said."""

    def __init__(self, logs: LogShipper, container: str) -> None:
        self.manifest: Manifest | None = None
        self._logs = logs
        self._container = container
        self._tap: LogTap | None = None

    def take(self, tap: LogTap) -> None:
        """The lines of a sandbox are this container's from now on."""
        assert self.manifest is not None  # noqa: S101 - sandboxes are for manifests
        topic = LogKey(self.manifest.tenant, self.manifest.app, self.manifest.function)
        tap.container = self._container
        tap.sink = lambda line: self._logs.offer(topic, line)
        self._tap = tap

    def log(self, text: str) -> None:
        """A sentence, between the lines of its sandbox; or lines, if there is none."""
        if self._tap is not None:
            self._tap.log(text)
        elif self.manifest is not None:
            topic = LogKey(self.manifest.tenant, self.manifest.app, self.manifest.function)
            for line in text.splitlines():  # what a resolver says has several
                self._logs.offer(topic, LogLine(time.time(), "platform", line, self._container))
