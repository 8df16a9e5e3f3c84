"""Versions that are shut down, and the ends of their containers. Pure: time is an argument (seconds).

A superseded version ends its calls in its own time. One whose app was stopped or whose tenant was disabled has a grace,
after which its containers are killed, whatever they do; containers that still start are ended at once. So are those
that are let out to what their tenant may no longer connect to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
    """The containers that are to end, whatever they do, and when each was last told to."""

    _told: dict[str, float] = field(default_factory=dict)

    def due(
        self, ends: Callable[[ContainerReport], str], containers: Iterable[tuple[str, ContainerReport]], at: float
    ) -> list[tuple[str, ContainerReport, str]]:
        """Node, report and the reason of each container to tell now; it counts as told at `at`. `ends`: why, or ""."""
        self._told = {name: told for name, told in self._told.items() if at - told <= REMEMBERED_S}
        due = [
            (node, container, why)
            for node, container in containers
            if container.state is not ContainerState.GONE
            and at - self._told.get(container.id, at - AGAIN_S) >= AGAIN_S
            and (why := ends(container))
        ]
        self._told |= {container.id: at for _, container, _ in due}
        return due
