"""Answers gateways that want requirements locked, or to know what packages there are, at a deploy."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import structlog

from pilotlight_core.bus import Bus, BusError
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.agent_questions import (
    DescribePackages,
    LockPackages,
    PackagesDescribed,
    PackagesLocked,
)
from pilotlight_runtime.environments.build_sandbox import BuildFailed
from pilotlight_runtime.environments.environment_builds import EnvironmentBuilds

log = structlog.get_logger(__name__)


WANTED_S = 85.0
"""With the line before it; a gateway waits little longer."""


class LockAnswers:
    """Answers on the bus, in tasks of `group`."""

    def __init__(
        self, bus: Bus, builds: EnvironmentBuilds, group: asyncio.TaskGroup, *, region: str, node: str
    ) -> None:
        self._bus = bus
        self._builds = builds
        self._group = group
        self._region = region
        self._node = node

    @property
    def subject(self) -> str:
        return subjects.lock_packages(self._region, self._node)

    def on_question(self, _subject: str, message: Any, _reply: str) -> None:
        """A gateway has asked."""
        if isinstance(message, DescribePackages):
            self._group.create_task(self._describe(message))
            return
        if not isinstance(message, LockPackages):
            return
        if not self._builds.has_room(message.tenant):
            self._answer(message, PackagesLocked(question=message.question, reason="busy"))
            return
        self._group.create_task(self._lock(message))

    async def _lock(self, asked: LockPackages) -> None:
        try:
            if asked.known_base and await self._builds.is_base(asked.base, asked.known_base, asked.known_python):
                self._answer(asked, PackagesLocked(question=asked.question, reason="unchanged"))
                return
            async with asyncio.timeout(WANTED_S):
                lock = await self._builds.lock(asked.tenant, asked.base, asked.requirements)
            answer = PackagesLocked(question=asked.question, lock=lock)
        except BuildFailed as error:
            answer = PackagesLocked(
                question=asked.question, reason="refused" if error.is_tenants else "failed", words=str(error)
            )
        except TimeoutError:
            answer = PackagesLocked(question=asked.question, reason="failed", words="it has no time for it now")
        except OSError as error:
            answer = PackagesLocked(question=asked.question, reason="failed", words=str(error))
        except Exception:
            log.exception("a lock went wrong; the others go on")
            answer = PackagesLocked(question=asked.question, reason="failed", words="the platform made a mistake")
        self._answer(asked, answer)

    async def _describe(self, asked: DescribePackages) -> None:
        try:
            async with asyncio.timeout(WANTED_S):
                base, locked = await self._builds.described(asked.tenant, asked.base, asked.lock)
            answer = PackagesDescribed(question=asked.question, base=base, locked=locked)
        except TimeoutError:
            answer = PackagesDescribed(question=asked.question, words="it has no time for it now")
        except (BuildFailed, OSError) as error:
            answer = PackagesDescribed(question=asked.question, words=str(error))
        except Exception:
            log.exception("a description went wrong; the others go on")
            answer = PackagesDescribed(question=asked.question, words="the platform made a mistake")
        self._answer(asked, answer)

    def _answer(self, asked: LockPackages | DescribePackages, answer: PackagesLocked | PackagesDescribed) -> None:
        with contextlib.suppress(BusError):  # the gateway asks another node
            self._bus.publish_nowait(subjects.packages_locked(self._region, asked.gateway, self._node), answer)
