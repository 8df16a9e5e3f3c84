"""How an app's record of rollouts moves on. Plain functions: each returns the record of after, one revision on.

They are given to `change_rollout`, which tries again with what somebody else has written meanwhile: each is idempotent,
and leaves alone what it does not concern. Whoever starts a rollout, the duty and people use the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from pilotlight_core.model.errors import BadInput, Conflict
from pilotlight_core.model.rollouts.alias_names import check_alias
from pilotlight_core.model.rollouts.rollout_record import (
    LAST_ROLLOUTS,
    MOST_ALIASES,
    MOST_UNTOLD,
    MOST_WITHDRAWN,
    EndedRollout,
    Rollout,
    RolloutRecord,
    RolloutState,
    Share,
    UntoldNews,
    Verdict,
)


def moved(record: RolloutRecord, rollout: Rollout) -> RolloutRecord:
    """The record with another state of its rollout, of which no more is decided here."""
    return replace(record, revision=record.revision + 1, rollout=rollout)


def with_news(record: RolloutRecord, kind: str, says: str, at: float) -> RolloutRecord:
    """The record of after a change, in which it is to be told what that has made of its rollout."""
    rollout = record.rollout
    if rollout is None:
        return record
    place = sum(one.id.startswith(f"{rollout.id}.{record.revision}.") for one in record.untold)
    verdict = rollout.verdict
    news = UntoldNews(
        id=f"{rollout.id}.{record.revision}.{place}", rollout=rollout.id, number=rollout.number, kind=kind, says=says,
        at=at, state=str(rollout.state), step=rollout.step, share=rollout.share, held=rollout.held,
        reason=rollout.reason, word=verdict.word, evidence=verdict.evidence,
    )  # fmt: skip
    return replace(record, untold=(*record.untold, news)[-MOST_UNTOLD:])


def without_news(record: RolloutRecord, told: Iterable[str]) -> RolloutRecord:
    """The record in which what has these ids was told; itself if nothing of it was to be. Nothing is split anew, so
    it is no revision on.
    """
    ids = frozenset(told)
    left = tuple(news for news in record.untold if news.id not in ids)
    return record if len(left) == len(record.untold) else replace(record, untold=left)


def with_share(
    record: RolloutRecord,
    *,
    share: Share,
    twin_share: Share,
    at: float,
    step: int | None = None,
    state: RolloutState | None = None,
) -> RolloutRecord:
    """The record when the running rollout has these shares, at `step` and in `state` where they change.

    `since` is `at` if the step or the state changes. The record itself if there is nothing to change.

    Raises:
        Conflict: no rollout is running, or it is rolling back: a share never rises again.
    """
    rollout = running(record)
    if rollout.state is RolloutState.ROLLING_BACK:
        raise Conflict(f"The rollout of {record.app} is rolling back.")
    to_step, to_state = rollout.step if step is None else step, rollout.state if state is None else state
    has_moved = (to_step, to_state) != (rollout.step, rollout.state)
    after = replace(
        rollout,
        share=share,
        twin_share=twin_share,
        step=to_step,
        state=to_state,
        since=at if has_moved else rollout.since,
    )
    return record if after == rollout else moved(record, after)


def rolled_back(
    record: RolloutRecord, at: float, reason: str, verdict: Verdict | None = None, *, marked: bool = True
) -> RolloutRecord:
    """The record when nothing is split any more, and the running rollout is rolling back.

    `marked`: whether its new versions are refused from now on, until somebody says `--retry`: those that were found
    to be worse, and not those for which there was no room or that a person has called back. The record itself if the
    rollout is rolling back or over.
    """
    rollout = record.running
    if rollout is None or rollout.state is RolloutState.ROLLING_BACK:
        return record
    withdrawn = record.withdrawn
    if marked:
        others = {version: by for version, by in withdrawn.items() if version not in rollout.canary.values()}
        withdrawn = others | dict.fromkeys(rollout.canary.values(), rollout.id)
        withdrawn = dict(list(withdrawn.items())[-MOST_WITHDRAWN:])
    after = replace(
        rollout,
        state=RolloutState.ROLLING_BACK,
        share=0,
        twin_share=0,
        since=at,
        held="",
        paused_by="",
        reason=reason,
        verdict=verdict or rollout.verdict,
    )
    return replace(moved(record, after), withdrawn=withdrawn)


def ended(record: RolloutRecord, at: float, state: RolloutState, reason: str = "") -> RolloutRecord:
    """The record when the running rollout has come to one of `ENDED`; the record itself if none is running.

    `promoted` is said after the app's own record has the new versions (`AppMoves`), `rolled_back` when what ran of
    them has ended, `superseded` when a person or a deploy has moved what is deployed.
    """
    rollout = record.running
    if rollout is None:
        return record
    after = replace(
        rollout, state=state, share=0, twin_share=0, since=at, held="", paused_by="", reason=reason or rollout.reason
    )
    return moved(_tried(record, rollout) if state is RolloutState.PROMOTED else record, after)


def started(
    record: RolloutRecord | None, tenant: str, app: str, rollout: Rollout, *, retry: bool = False
) -> RolloutRecord:
    """The record in which `rollout` is under way, numbered on; the one before it is among `past`.

    Raises:
        Conflict: one is under way (`rollout_running`), or one of its new versions was rolled back before
            (`version_withdrawn`), and `retry` is not said.
    """
    before = RolloutRecord(tenant=tenant, app=app, revision=0) if record is None else record
    if before.running is not None:
        raise Conflict(
            f"A rollout of {app} is under way: promote or abort it first.", code="rollout_running",
        )  # fmt: skip
    withdrawn = before.withdrawn
    if retry:
        withdrawn = {version: by for version, by in withdrawn.items() if version not in rollout.canary.values()}
    check_not_withdrawn(replace(before, withdrawn=withdrawn), rollout.canary)
    last, past = before.rollout, before.past
    if last is not None:
        past = (*past, kept_of(last))[-LAST_ROLLOUTS:]
    number = 1 if last is None else last.number + 1
    return replace(
        _tried(before, rollout),
        revision=before.revision + 1,
        rollout=replace(rollout, number=number),
        withdrawn=withdrawn,
        past=past,
    )


def _tried(record: RolloutRecord, rollout: Rollout) -> RolloutRecord:
    """The record whose rollout has calls run by versions that somebody had called back before."""
    staying = tuple(version for version in record.called_back if version not in rollout.canary.values())
    return replace(record, called_back=staying)


def superseded(record: RolloutRecord, functions: dict[str, str], at: float, reason: str) -> RolloutRecord:
    """The record when somebody has put `functions` (name -> version id) into service: no rollout goes on beside that.

    The record itself if nothing is under way, and none of them was called back.
    """
    after = ended(record, at, RolloutState.SUPERSEDED, reason)
    if after is not record:
        after = with_news(after, "rollout.superseded", f"The rollout is superseded: {reason}", at)
    staying = tuple(version for version in after.called_back if version not in functions.values())
    if staying == after.called_back:
        return after
    return replace(after, revision=record.revision + 1, called_back=staying)


def called_back(record: RolloutRecord | None, tenant: str, app: str, versions: Iterable[str]) -> RolloutRecord:
    """The record when a person has taken `versions` out of service: calls that wait for them go elsewhere."""
    before = RolloutRecord(tenant=tenant, app=app, revision=0) if record is None else record
    left = tuple(sorted(versions))
    return before if left == before.called_back else replace(before, revision=before.revision + 1, called_back=left)


def retried(record: RolloutRecord, functions: dict[str, str]) -> RolloutRecord:
    """The record in which none of the versions of `functions` is refused any more; itself if none was."""
    withdrawn = {version: by for version, by in record.withdrawn.items() if version not in functions.values()}
    if len(withdrawn) == len(record.withdrawn):
        return record
    return replace(record, revision=record.revision + 1, withdrawn=withdrawn)


def check_not_withdrawn(record: RolloutRecord | None, functions: dict[str, str]) -> None:
    """Raises Conflict (`version_withdrawn`): a rollout was rolled back because of one of these versions."""
    if record is None:
        return
    for function, version in functions.items():
        if version in record.withdrawn:
            raise Conflict(
                f"{record.app}.{function}: the version {version} was rolled back by the rollout "
                f"{record.withdrawn[version]}: change it, or say --retry.",
                code="version_withdrawn",
                field=function,
            )


def kept_of(rollout: Rollout) -> EndedRollout:
    """What stays of a rollout when the next one begins."""
    return EndedRollout(
        id=rollout.id,
        number=rollout.number,
        state=rollout.state,
        canary=rollout.canary,
        control=rollout.control,
        started_at=rollout.started_at,
        ended_at=rollout.since,
        by=rollout.by,
        reason=rollout.reason,
        verdict=rollout.verdict,
    )


def with_alias(record: RolloutRecord | None, tenant: str, app: str, function: str, name: str, to: str) -> RolloutRecord:
    """The record in which an alias of a function stands for the version `to`; itself if it does already.

    Raises:
        BadInput: an alias cannot be called so, or the app has `MOST_ALIASES`.
    """
    check_alias(name)
    before = RolloutRecord(tenant=tenant, app=app, revision=0) if record is None else record
    if before.alias(function, name) == to:
        return before
    aliases = before.aliases | {function: before.aliases.get(function, {}) | {name: to}}
    if sum(len(of_function) for of_function in aliases.values()) > MOST_ALIASES:
        raise BadInput(f"{app} has {MOST_ALIASES} aliases, which is the most: delete one first.", field="alias")
    return replace(before, revision=before.revision + 1, aliases=aliases)


def without_alias(record: RolloutRecord, function: str, name: str) -> RolloutRecord:
    """The record without an alias; itself if it has none of that name."""
    if record.alias(function, name) is None:
        return record
    left = {alias: version for alias, version in record.aliases[function].items() if alias != name}
    aliases = {one: of_function for one, of_function in record.aliases.items() if one != function}
    return replace(record, revision=record.revision + 1, aliases=aliases | ({function: left} if left else {}))


def running(record: RolloutRecord) -> Rollout:
    """The rollout that is under way.

    Raises:
        Conflict: none is.
    """
    if record.running is None:
        raise Conflict(f"No rollout of {record.app} is under way.")
    return record.running
