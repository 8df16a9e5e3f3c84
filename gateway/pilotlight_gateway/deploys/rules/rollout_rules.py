"""What a deploy means for rollouts of its app: none goes on beside it, and what was rolled back is refused."""

from __future__ import annotations

from pilotlight_core.model.api.call_api import DeployRequest
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.rollouts.rollout_moves import check_not_withdrawn, retried, superseded
from pilotlight_core.model.rollouts.rollout_record import RolloutRecord
from pilotlight_core.model.spec import AppRecord
from pilotlight_gateway.tenancy.registry_port import RegistryPort


def check_no_traffic(request: DeployRequest) -> None:
    """Raises BadInput: a run without traffic, which nobody could call."""
    if request.no_traffic and request.ends_in_s is not None:
        raise BadInput(
            "no_traffic: a run is called as soon as it is deployed: leave one of both out.", field="no_traffic"
        )


def check_tried_before(
    rollouts: RolloutRecord | None, before: AppRecord | None, functions: dict[str, str], request: DeployRequest
) -> None:
    """Refuse to put versions into service (name -> version id) that were rolled back, unless they are to be tried anew.

    What is in service may be deployed again. Raises Conflict (`version_withdrawn`).
    """
    if request.retry or request.no_traffic:
        return
    present = before.functions if before is not None else {}
    check_not_withdrawn(rollouts, {name: id_ for name, id_ in functions.items() if present.get(name) != id_})


async def supersede_rollout(
    registry: RegistryPort, rollouts: RolloutRecord, functions: dict[str, str], at: float, *, retry: bool
) -> None:
    """End the rollout of an app that was deployed anew, at the unix second `at`; forgive its versions if `retry`.

    If this process dies before it, the rollout's duty does it.
    """

    def changed(record: RolloutRecord | None) -> RolloutRecord | None:
        if record is None:
            return None
        after = superseded(record, functions, at, "the app was deployed anew")
        return retried(after, functions) if retry else after

    if changed(rollouts) is not rollouts:
        await registry.change_rollout(rollouts.tenant, rollouts.app, changed)
