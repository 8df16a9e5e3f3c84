"""Puts versions into service that an app has already: what was deployed before, or what a rollout has proven.

Both write the app's record by one compare-and-set, and the record of its rollouts by another. A crash between the two
is finished by whoever does the same again: each writes only what is not so yet.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from pilotlight_core.bus import retry_conflicts
from pilotlight_core.model.errors import Conflict, NotFound
from pilotlight_core.model.rollouts.rollout_moves import called_back, rolled_back, superseded, with_news
from pilotlight_core.model.rollouts.rollout_record import Rollout, RolloutRecord, RolloutState
from pilotlight_core.model.spec import AppRecord, FunctionSpec
from pilotlight_gateway.deploys.app_records import deploy_before, moved_record, version_name
from pilotlight_gateway.deploys.rules.schedule_bounds import check_schedule_bounds
from pilotlight_gateway.deploys.served_models import ServedModels
from pilotlight_gateway.tenancy.auth import Principal
from pilotlight_gateway.tenancy.function_shares import check_still_open
from pilotlight_gateway.tenancy.name_hints import known_app
from pilotlight_gateway.tenancy.registry_port import RegistryPort


class WentBack(NamedTuple):
    """What a rollback has moved."""

    before: AppRecord
    after: AppRecord
    """`before` itself, if the old versions had never left."""
    back_to: int = 0
    """The revision whose versions are in service again; 0: they never left."""
    aborted: Rollout | None = None
    """The rollout that was under way."""


@dataclass(frozen=True, kw_only=True)
class AppMoves:
    """Of all apps. `wall`: unix seconds."""

    registry: RegistryPort
    wall: Callable[[], float] = time.time

    @property
    def models(self) -> ServedModels:
        """The names under which functions are served: they go with what is deployed."""
        return ServedModels(self.registry)

    async def roll_back(self, principal: Principal, app: str, to: int | None = None, reason: str = "") -> WentBack:
        """Go back: abort the rollout that is under way; put what was deployed before into service, if there is none
        or if `to` names a revision.

        No limit is asked: what ran before may run again.

        Raises:
            NotFound: there is no such app or revision, nothing to go back to, or a version is not kept any more.
            Conflict: other deploys keep changing the app.
        """
        tenant, at = principal.tenant, self.wall()
        before = await known_app(self.registry, tenant, app)
        why = reason or f"called back by {principal.key_id}"
        aborted = await self._abort(tenant, app, at, why)
        if aborted is not None and to is None:
            return WentBack(before, before, aborted=aborted)

        async def attempt() -> WentBack:
            present = await known_app(self.registry, tenant, app)
            line = deploy_before(present, to)
            message = f"rollback to revision {line.revision}{f': {reason}' if reason else ''}"
            after = moved_record(
                present, line.functions, by=principal.key_id, at=at, message=message, back_to=line.revision
            )
            if after is not None:
                await self._write(present, after, at)
            return WentBack(present, after or present, line.revision, aborted)

        went = await retry_conflicts(attempt, conflict=Conflict)
        await self._call_back(went, at)
        return went

    async def promote(self, tenant: str, app: str, rollout: Rollout) -> AppRecord:
        """Put the new versions of a rollout into service; the app's record after it. Again: nothing happens.

        Raises:
            NotFound: the app is deleted, or a version is not kept any more.
            Conflict: what is deployed is not what the rollout began with any more, or other deploys keep changing it.
            BadInput, QuotaExceeded: its schedules or names of models are more than the tenant may have.
        """

        async def attempt() -> AppRecord:
            before, at = await known_app(self.registry, tenant, app), self.wall()
            functions = before.functions | rollout.canary
            if before.functions == functions and not before.stopped:
                return before
            moved = any(before.functions.get(name) != version for name, version in rollout.control.items())
            if before.stopped or moved:
                raise Conflict(f"{app} was deployed or stopped since the rollout began: it cannot be promoted.")
            after = moved_record(before, functions, by=rollout.by, at=at, message=_of_rollout(rollout))
            if after is not None:
                await self._write(before, after, at)
            return after or before

        return await retry_conflicts(attempt, conflict=Conflict)

    async def demote(self, tenant: str, app: str, rollout: Rollout) -> AppRecord:
        """Put the old versions of a rollout back, that was called back while it was promoted. Again: nothing happens.

        Raises:
            NotFound: the app is deleted, or an old version is not kept any more.
            Conflict: other deploys keep changing it.
        """

        async def attempt() -> AppRecord:
            before, at = await known_app(self.registry, tenant, app), self.wall()
            # A later deploy of the same versions is somebody's wish, and stays.
            if not before.history or before.history[-1].message != _of_rollout(rollout):
                return before
            functions = {
                name: rollout.control.get(name, version) if rollout.canary.get(name) == version else version
                for name, version in before.functions.items()
            }
            after = moved_record(before, functions, by=rollout.by, at=at, message=f"{_of_rollout(rollout)} aborted")
            if after is not None:
                await self._write(before, after, at)
            return after or before

        return await retry_conflicts(attempt, conflict=Conflict)

    async def _abort(self, tenant: str, app: str, at: float, why: str) -> Rollout | None:
        """Split nothing any more; the rollout that was under way."""
        aborted: Rollout | None = None

        def changed(record: RolloutRecord | None) -> RolloutRecord | None:
            nonlocal aborted
            aborted = record.running if record is not None else None
            if record is None or (after := rolled_back(record, at, why, marked=False)) is record:
                return record
            return with_news(after, "rollout.rolled_back", f"Rolled back: {why}", at)

        if await self.registry.rollout(tenant, app) is not None:
            await self.registry.change_rollout(tenant, app, changed)
        return aborted

    async def _call_back(self, went: WentBack, at: float) -> None:
        """Have what waits for the versions that have left go to those that have come."""
        record = went.after
        left = {id_ for name, id_ in went.before.functions.items() if record.functions.get(name) != id_}

        def changed(held: RolloutRecord | None) -> RolloutRecord | None:
            before = held
            if held is not None and (running := held.running) is not None:
                over = running.state is RolloutState.ROLLING_BACK  # the duty says when its calls have ended
                before = held if over else superseded(held, record.functions, at, "what is deployed was moved")
            return called_back(before, record.tenant, record.app, left)

        if left:
            await self.registry.change_rollout(record.tenant, record.app, changed)

    async def _write(self, before: AppRecord, after: AppRecord, at: float) -> None:
        """Raises Conflict: the app was changed meanwhile; NotFound: a version is gone; and what `models.claim` does."""
        tenant, app = after.tenant, after.app
        specs = {name: await self._spec(after, name, id_) for name, id_ in after.functions.items()}
        check_still_open(self.registry, after)
        check_schedule_bounds(self.registry, tenant, app, specs.values())
        await self.models.claim(tenant, app, specs, at)
        await self.registry.deploy(after, before.revision)
        await self.models.release(after, specs, at)

    async def _spec(self, app: AppRecord, function: str, version_id: str) -> FunctionSpec:
        version = await self.registry.fetch_version(version_id)
        if version is None or app.number_of(function, version_id) is None:
            name = version_name(app, function, version_id)
            raise NotFound(f"{name} is not kept any more: deploy its code again.", field="to")
        return version.spec


def _of_rollout(rollout: Rollout) -> str:
    return f"rollout {rollout.number}"
