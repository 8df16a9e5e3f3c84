"""Versions that are shut down, and the ends of their containers. Pure: time is an argument (seconds).

A superseded version ends its calls in its own time. One whose app was stopped or whose tenant was disabled has a grace,
after which its containers are killed, whatever they do; containers that still start are ended at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pilotlight_core.model.messages.node_messages import ContainerReport, ContainerState
from pilotlight_core.model.spec import AppRecord
from pilotlight_core.model.tenancy import TenantRecord

AGAIN_S = 5.0
"""A command is repeated as long as its container is there: it may have been lost. Agents keep the earliest end."""
REMEMBERED_S = 60.0
DELETED = "its version is deleted"


def why_shut_down(app: AppRecord | None, tenant: TenantRecord | None, wall: float) -> str:
    """Why a version of this app and tenant is shut down at the unix second `wall`; "": it is not."""
    if tenant is not None and tenant.disabled:
        return "its tenant is disabled"
    if app is None:
        return "its app is gone"
    if app.has_ended(wall):
        return "its run has ended"
    return "its app is stopped" if app.stopped else ""


@dataclass(kw_only=True)
class VersionShutdowns:
    """The containers of versions that are shut down, and when each was last told to end."""

    _told: dict[str, float] = field(default_factory=dict)

    def due(
        self, shut_down: Mapping[str, str], containers: Iterator[tuple[str, ContainerReport]], at: float
    ) -> list[tuple[str, ContainerReport]]:
        """Node and report of each container to tell now; it counts as told at `at`."""
        self._told = {name: told for name, told in self._told.items() if at - told <= REMEMBERED_S}
        due = [
            (node, container)
            for node, container in containers
            if container.version in shut_down
            and container.state is not ContainerState.GONE
            and at - self._told.get(container.id, at - AGAIN_S) >= AGAIN_S
        ]
        self._told |= {container.id: at for _, container in due}
        return due
