"""What people ask of rollouts: to start one, to see it, and to have their word, which goes before the judge's."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from pilotlight_core.host.outbound.address_policy import Network
from pilotlight_core.model.api.rollouts.rollout_api import RolloutRequest, RolloutStarted, RolloutView, RolloutWord
from pilotlight_core.model.errors import BadInput, Conflict, NotFound
from pilotlight_core.model.ids import VERSION_PIN, token
from pilotlight_core.model.rollouts.rollout_moves import ended, moved, rolled_back, running, started, with_news
from pilotlight_core.model.rollouts.rollout_record import (
    SALT_BYTES,
    Cohort,
    GuardTerms,
    Rollout,
    RolloutRecord,
    RolloutState,
    RolloutTerms,
    Sticky,
)
from pilotlight_core.model.rollouts.shadow_rules import why_no_shadows
from pilotlight_core.model.spec import AppRecord, Mode, VersionRecord
from pilotlight_gateway.deploys.moves.app_moves import AppMoves
from pilotlight_gateway.judging.verdicts import UNDER
from pilotlight_gateway.judging.visible_regressions import visible_sentences
from pilotlight_gateway.rollouts.rollout_views import RolloutViews
from pilotlight_gateway.schemas.schema_compat import SchemaChange, breaking_changes
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.tenancy.auth import Principal
from pilotlight_gateway.tenancy.name_hints import known_app
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.webhooks.webhook_urls import check_url

GUARDS = frozenset(UNDER)
"""The platform's own."""


@dataclass(frozen=True, kw_only=True)
class RolloutDesk:
    """`rate_of`: calls an hour of functions; `wall`: unix seconds."""

    registry: RegistryPort
    schemas: VersionSchemas
    moves: AppMoves
    views: RolloutViews
    rate_of: Callable[[Sequence[str]], Awaitable[float]]
    networks: Sequence[Network] = ()
    """That gates may be in although they are not public."""
    has_pairs: bool = True
    wall: Callable[[], float] = time.time

    async def start(self, principal: Principal, app: str, asked: RolloutRequest) -> RolloutStarted:
        """Start a rollout.

        Raises:
            NotFound: there is no such app or version.
            BadInput: names the wrong field; a version breaks callers of the one before (`allow_breaking`).
            Conflict: one is under way (`rollout_running`), or the version was rolled back (`version_withdrawn`).
        """
        terms = terms_of(asked)
        record = await known_app(self.registry, principal.tenant, app)
        if terms.gate:
            check_gate(terms.gate, self.networks)
        canary = canary_of(record, asked.canary)
        control = {name: record.functions[name] for name in canary if name in record.functions}
        if not control:
            raise BadInput(f"{app} has nothing in service yet: deploy it.", field="canary")
        versions = [await self._version(canary[name]) for name in control]
        versions += [await self._version(version) for version in control.values()]
        changes = await self._breaking(control, canary)
        if changes and not asked.allow_breaking:
            raise BadInput(_refusal(changes), field="allow_breaking")
        at = self.wall()
        made = Rollout(
            id=f"rol_{token(20)}", number=1, control=control, canary=canary, terms=terms,
            salt=secrets.token_bytes(SALT_BYTES), since=at, started_at=at, by=principal.key_id,
        )  # fmt: skip

        says = f"The rollout of {', '.join(sorted(canary))} is started by {principal.key_id}."

        def change(present: RolloutRecord | None) -> RolloutRecord | None:
            begun = started(present, principal.tenant, app, made, retry=asked.retry)
            return with_news(begun, "rollout.started", says, at)

        changed = await self.registry.change_rollout(principal.tenant, app, change)
        rollout = changed.running if changed is not None else None
        if changed is None or rollout is None:
            raise Conflict(f"The rollout of {app} was changed meanwhile.")
        why = next((fault for one in versions if (fault := why_no_shadows(one.spec))), "")
        why = why or ("" if self.has_pairs else "this platform runs none")
        warnings = [f"{one.method} ({one.part}): {one.says}" for one in changes]
        if why and terms.pairs:
            warnings.append(f"Without pairs of shadows: {why}.")
        rate = await self.rate_of([f"{principal.tenant}:{app}.{function}" for function in control])
        streams = any(method.mode is Mode.GENERATOR for one in versions for method in one.spec.methods)
        visible = visible_sentences(terms, calls_per_hour=rate, shadows=not why and terms.pairs > 0, streams=streams)
        return RolloutStarted(
            rollout=self.views.view(record, rollout, rollout.verdict), visible=visible, warnings=tuple(warnings)
        )

    async def send_word(self, principal: Principal, app: str, word: str, asked: RolloutWord) -> RolloutView:
        """Pause, resume, promote, abort or freeze the rollout under way; whatever the judge says, and also while it is
        paused.

        Raises:
            NotFound: there is no such app, or it has had no rollout.
            Conflict: none is under way, or another one than was meant; of `promote`, it is rolling back, or something
                else was deployed.
        """
        record = await known_app(self.registry, principal.tenant, app)
        at, why = self.wall(), f"{principal.key_id}{f': {asked.reason}' if asked.reason else ''}"
        meant = asked.rollout
        if word == "promote":
            meant = await self._promote(principal.tenant, app, meant)

        def change(present: RolloutRecord | None) -> RolloutRecord | None:
            if present is None:
                raise NotFound(f"{app} has had no rollout.")
            check_meant(present, meant)
            if word == "promote" and is_over_as(present, RolloutState.PROMOTED):
                return present  # whoever keeps rollouts has seen it first
            after = with_word(present, word, why, at)
            if after is present or (kind := TOLD.get(word)) is None:
                return after
            return with_news(after, kind, f"{DONE[word]} by {why}.", at)

        changed = await self.registry.change_rollout(principal.tenant, app, change)
        if changed is None or changed.rollout is None:
            raise NotFound(f"{app} has had no rollout.")
        return self.views.view(record, changed.rollout, changed.rollout.verdict)

    async def _promote(self, tenant: str, app: str, meant: str) -> str:
        """Put the new versions into service; the id of whose they are. An abort that comes between wins: whoever keeps
        rollouts puts the old ones back.
        """
        present = await self.registry.rollout(tenant, app)
        if present is None:
            raise NotFound(f"{app} has had no rollout.")
        check_meant(present, meant)
        rollout = running(present)
        if rollout.state is RolloutState.ROLLING_BACK:
            raise Conflict(f"The rollout of {app} is rolling back.")
        await self.moves.promote(tenant, app, rollout)
        return rollout.id

    async def _version(self, version_id: str) -> VersionRecord:
        found = self.registry.version(version_id) or await self.registry.fetch_version(version_id)
        if found is None:
            raise NotFound(f"The version {version_id} is not kept any more.")
        return found

    async def _breaking(self, control: dict[str, str], canary: dict[str, str]) -> list[SchemaChange]:
        found = []
        for function, version_id in sorted(control.items()):
            old = await self.schemas.whole(await self._version(version_id))
            new = await self.schemas.whole(await self._version(canary[function]))
            for change in await breaking_changes(old.spec.methods, new.spec.methods):
                name = f"{function}.{change.method}" if change.method else function
                found.append(replace(change, method=name))
        return found


TOLD = {
    "promote": "rollout.promoted",
    "abort": "rollout.rolled_back",
    "pause": "rollout.held",
    "freeze": "rollout.held",
}
"""By word, the event that it is."""
DONE = {"promote": "Promoted", "abort": "Aborted", "pause": "Paused", "freeze": "Frozen", "resume": "Resumed"}


def check_meant(record: RolloutRecord, meant: str) -> None:
    """Raises Conflict: the app's last rollout is another one than was `meant`, by its id; "": any is."""
    last = record.rollout
    if meant and last is not None and last.id != meant:
        raise Conflict(
            f"The last rollout of {record.app} is {last.id} by now, not {meant}: nothing was done.", field="rollout"
        )


def is_over_as(record: RolloutRecord, state: RolloutState) -> bool:
    """Whether the app's last rollout has come to this end."""
    return record.rollout is not None and record.rollout.state is state


def with_word(record: RolloutRecord, word: str, why: str, at: float) -> RolloutRecord:
    """The record when a person has said a word; itself if that is so already. Pure.

    Raises:
        Conflict: no rollout is under way, or it is rolling back.
    """
    now = running(record)
    if word == "abort":
        return rolled_back(record, at, f"aborted by {why}", marked=False)
    if now.state is RolloutState.ROLLING_BACK:
        raise Conflict(f"The rollout of {record.app} is rolling back.")
    if word == "promote":
        return ended(record, at, RolloutState.PROMOTED, f"promoted by {why}")
    if word == "pause":
        after = now if now.paused_by else replace(now, paused_by=why[:200])
    elif word == "freeze":
        after = replace(now, frozen=True)
    else:
        after = replace(now, paused_by="", frozen=False, held="", held_since=0.0)
    return record if after == now else moved(record, after)


def check_gate(url: str, allowed: Sequence[Network]) -> None:
    """Raises BadInput: the address of a gate could never be asked."""
    try:
        check_url(url, allowed)
    except BadInput as error:
        raise BadInput(error.detail.replace("url:", "gate:", 1), field="gate") from None


def terms_of(asked: RolloutRequest) -> RolloutTerms:
    """The terms that a request asks for.

    Raises:
        BadInput: steps that do not rise, or guards that are unknown or named like the platform's own.
    """
    steps = tuple(round(step * 100) for step in asked.steps)
    if list(steps) != sorted(set(steps)) or steps[0] < 1:
        raise BadInput("steps are percent that rise, such as 1,5,25,50,100.", field="steps")
    if unknown := sorted(asked.weights.keys() - GUARDS):
        raise BadInput(
            f"weights: there is no guard {unknown[0]!r}: there are {', '.join(sorted(GUARDS))}.", field="weights"
        )
    if taken := [guard.name for guard in asked.guards if guard.name in GUARDS]:
        raise BadInput(f"guards: {taken[0]} is one of the platform's own: choose another name.", field="guards")
    return RolloutTerms(
        steps=steps, every_s=asked.every_s, calls=asked.calls, bake_s=asked.bake_s,
        hold_back=round(asked.hold_back * 100), sticky=Sticky(asked.sticky),
        cohort=Cohort(tenants=asked.cohort_tenants, headers=asked.cohort_headers), twin=asked.twin, pairs=asked.pairs,
        tolerance=asked.tolerance, answer_tolerance=asked.answer_tolerance, weights=asked.weights,
        guards=tuple(GuardTerms(name=g.name, kind=g.kind, field=g.field, weight=g.weight) for g in asked.guards),
        on_undecided=asked.on_undecided, surge=asked.surge, gate=asked.gate, allow_breaking=asked.allow_breaking,
        skip_judging=asked.skip_judging,
    )  # fmt: skip


def canary_of(record: AppRecord, named: str) -> dict[str, str]:
    """The versions of an app that a rollout is to bring, by function; only those that are not in service.

    Raises:
        NotFound: there is no such version or deploy. BadInput: nothing differs, or the name fits several functions.
    """
    functions = _named(record, named)
    canary = {name: version for name, version in functions.items() if record.functions.get(name) != version}
    if not canary:
        raise BadInput(
            f"What {record.app} would change to is in service already: deploy with --no-traffic first.", field="canary"
        )
    return canary


def _named(record: AppRecord, named: str) -> dict[str, str]:
    if pin := VERSION_PIN.fullmatch(named):
        names = list(record.named_functions)
        if len(names) != 1:
            raise BadInput(
                f"{record.app} has several functions: name the number of a deploy, as `pilotlight app history` shows "
                "them.",
                field="canary",
            )
        found = record.version_at(names[0], int(pin[1]))
        if found is None:
            raise NotFound(f"{record.app}.{names[0]} has no version {named}.")
        return {names[0]: found}
    if named:
        line = next((one for one in record.history if named.isdigit() and one.revision == int(named)), None)
        if line is None:
            raise NotFound(f"{record.app} has no deploy {named!r} on record: expected v8, or the number of a deploy.")
        return dict(line.functions)
    line = next((one for one in reversed(record.history) if not one.traffic), None)
    if line is None:
        raise NotFound(f"{record.app} has no deploy without traffic: deploy with --no-traffic first, or name one.")
    return dict(line.functions)


def _refusal(changes: list[SchemaChange]) -> str:
    first = changes[0]
    shown = f" ({first.part} {first.witness})" if first.witness else ""
    more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
    return (
        f"{first.method}: {first.says}{shown}{more}. Callers of the old version would be sent there: mend it, or say "
        "allow_breaking."
    )
