"""An app's record after a deploy or a stop, which of its versions are kept, and how it is shown. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec
from msgspec import UNSET

from pilotlight_core.model.api.call_api import (
    AppInfo,
    DeployedFunction,
    DeployLine,
    FunctionInfo,
    HookInfo,
    ScheduleInfo,
)
from pilotlight_core.model.errors import Conflict, NotFound
from pilotlight_core.model.pipelines.pipeline import is_companion
from pilotlight_core.model.schedules.ticks import next_tick
from pilotlight_core.model.spec import AppRecord, DeployRecord, VersionRecord
from pilotlight_core.model.versions.secret_names import masked
from pilotlight_gateway.schedules.scheduled_methods import ScheduledMethod, methods_of
from pilotlight_gateway.tenancy.registry_port import RegistryPort

DEPLOYS_KEPT = 100
VERSIONS_KEPT = 1_000
"""Of a function whose tenant has no limit."""
RECORD_BYTES = 800_000
"""The largest record of an app. Every gateway has it in memory, and each deploy writes it anew."""


def next_record(
    record: AppRecord | None,
    *,
    tenant: str,
    app: str,
    functions: dict[str, str],
    by: str,
    at: float,
    message: str,
    keep: int = VERSIONS_KEPT,
    ends_at: float = 0.0,
    traffic: bool = True,
    named: Collection[str] = (),
) -> AppRecord | None:
    """The app's record after a deploy of `functions` (name -> version id); None: nothing changes.

    Of each function the newest `keep` versions stay, the deployed one, and those of `named`: aliases and a rollout
    name them. A function that no deploy of the history has is forgotten. Without `traffic` what is deployed stays.

    Raises:
        Conflict: the record would be too large, or a run would replace what is deployed or the other way about.
    """
    if record is None:
        record = AppRecord(tenant=tenant, app=app, revision=0, functions={}, ends_at=ends_at)
    elif bool(record.ends_at) != bool(ends_at):
        is_there = "a run" if record.ends_at else "deployed"
        raise Conflict(f"{app} is {is_there} already: a run needs a name that nothing else has.", field="ends_in_s")
    elif _has_come(record, functions, traffic=traffic):
        return None
    versions = dict(record.versions)
    for name, version_id in functions.items():
        known = versions.get(name, ())
        if is_companion(name):  # nobody sees its numbers, and what a class has named last is kept longest
            known = tuple(one for one in known if one != version_id)
        if version_id not in known:
            versions[name] = (*known, version_id)
    line = DeployRecord(
        revision=record.revision + 1, at=at, by=by, functions=functions, message=message, traffic=traffic
    )
    after = msgspec.structs.replace(
        record,
        revision=record.revision + 1,
        functions=functions if traffic else record.functions,
        versions=versions,
        history=(*record.history, line)[-DEPLOYS_KEPT:],
        stopped=record.stopped and not traffic,
    )
    return _fitting(_trimmed(after, keep, named))


def _has_come(record: AppRecord, functions: dict[str, str], *, traffic: bool) -> bool:
    """Whether a deploy of `functions` would change nothing."""
    if traffic:
        return record.functions == functions and not record.stopped
    # A rollout is started by a line of the history: versions that are not in service have the last of their kind.
    serves = all(record.functions.get(name) == version_id for name, version_id in functions.items())
    kept = all(version_id in record.versions.get(name, ()) for name, version_id in functions.items())
    return kept and (serves or registered_by(record, functions) is not None)


def registered_by(record: AppRecord, functions: dict[str, str]) -> int | None:
    """The revision of the last deploy without traffic, if it was of `functions` (name -> version id)."""
    last = next((line for line in reversed(record.history) if not line.traffic), None)
    return last.revision if last is not None and last.functions == functions else None


def moved_record(
    record: AppRecord, functions: dict[str, str], *, by: str, at: float, message: str, back_to: int = 0
) -> AppRecord | None:
    """The app's record when versions that it has are what is deployed (name -> version id); None: they are."""
    if record.functions == functions and not record.stopped:
        return None
    revision = record.revision + 1
    line = DeployRecord(revision=revision, at=at, by=by, functions=functions, message=message, back_to=back_to)
    history = (*record.history, line)[-DEPLOYS_KEPT:]
    after = msgspec.structs.replace(record, revision=revision, functions=functions, history=history, stopped=False)
    return _fitting(after)


def deploy_before(record: AppRecord, revision: int | None = None) -> DeployRecord:
    """The deploy of a revision; without one, the last before the present one that had put something else into service.

    Behind a rollback it is one before the deploy that was gone back to: who asks twice goes back twice.

    Raises:
        NotFound: there is none, or it is not in the history any more.
    """
    lines = [line for line in record.history if line.functions]
    if revision is not None:
        if (found := next((line for line in lines if line.revision == revision), None)) is None:
            kept = ", ".join(str(line.revision) for line in lines[-10:])
            raise NotFound(f"{record.app} has no deploy of revision {revision} in its history: the last are {kept}.")
        return found
    served = [line for line in lines if line.traffic]
    present = (served[-1].back_to or served[-1].revision) if served else 0
    before = (one for one in reversed(served) if one.revision < present and one.functions != record.functions)
    if (last := next((one for one in before if not one.back_to), None)) is None:
        raise NotFound(f"{record.app} has had nothing else in service before: there is nothing to go back to.")
    return last


def stopped_record(record: AppRecord, *, by: str, at: float) -> AppRecord | None:
    """The app's record when it is stopped; None if it is already."""
    if record.stopped:
        return None
    line = DeployRecord(revision=record.revision + 1, at=at, by=by, functions={}, message="stopped")
    history = (*record.history, line)[-DEPLOYS_KEPT:]
    return _fitting(msgspec.structs.replace(record, revision=record.revision + 1, stopped=True, history=history))


def renewed_record(record: AppRecord, ends_at: float) -> AppRecord:
    """The record of a run that ends later.

    Raises:
        Conflict: it is no run.
    """
    if not record.ends_at:
        raise Conflict(f"{record.app} is deployed for good: it does not end.")
    return msgspec.structs.replace(record, revision=record.revision + 1, ends_at=ends_at)


def _trimmed(record: AppRecord, keep: int, named: Collection[str]) -> AppRecord:
    """The record without the versions that are not kept: numbers go on, so what is older than a kept one stays."""
    lately = {name for line in record.history for name in line.functions}
    versions, forgotten = {}, {}
    for name, known in record.versions.items():
        if name not in lately and name not in record.functions:
            continue
        deployed = record.functions.get(name)
        needed = [place for place, version_id in enumerate(known) if version_id == deployed or version_id in named]
        drop = min(max(0, len(known) - keep), *needed[:1], len(known))
        versions[name] = known[drop:]
        if gone := record.forgotten.get(name, 0) + drop:
            forgotten[name] = gone
    return msgspec.structs.replace(record, versions=versions, forgotten=forgotten)


def _fitting(record: AppRecord) -> AppRecord:
    """`record` with as much of its history as fits.

    Raises:
        Conflict: it does not fit without history.
    """
    while len(msgspec.msgpack.encode(record)) > RECORD_BYTES:
        if len(record.history) <= 1:
            raise Conflict(f"The app {record.app} has too many functions and versions: divide it into several.")
        record = msgspec.structs.replace(record, history=record.history[len(record.history) // 2 :])
    return record


def removed(before: AppRecord | None, functions: Iterable[str]) -> tuple[str, ...]:
    """The functions that a deploy of `functions` takes out of service."""
    if before is None or before.stopped:
        return ()
    return tuple(sorted(before.named_functions.keys() - set(functions)))


def version_name(record: AppRecord, function: str, version_id: str) -> str:
    """`app.function@v7`; of a version that is not kept, with its id."""
    number = record.number_of(function, version_id)
    return f"{record.app}.{function}@{version_id if number is None else f'v{number}'}"


def deployed(record: AppRecord, before: AppRecord | None) -> tuple[DeployedFunction, ...]:
    """The functions of `record`, compared with the record before it."""
    return tuple(
        DeployedFunction(
            name=name,
            version=version_name(record, name, version_id),
            version_id=version_id,
            endpoint=f"/v1/functions/{record.app}.{name}/calls",
            changed=before is None or before.functions.get(name) != version_id,
        )
        for name, version_id in record.named_functions.items()
    )


def registered(record: AppRecord, before: AppRecord | None, functions: dict[str, str]) -> tuple[DeployedFunction, ...]:
    """Versions that `record` has and does not put into service; `changed`: it had them not before."""
    return tuple(
        DeployedFunction(
            name=name,
            version=version_name(record, name, version_id),
            version_id=version_id,
            endpoint=f"/v1/functions/{version_name(record, name, version_id)}/calls",
            changed=before is None or version_id not in before.versions.get(name, ()),
        )
        for name, version_id in functions.items()
        if not is_companion(name)
    )


def app_info(record: AppRecord, registry: RegistryPort, containers: Iterable[dict[str, object]], at: float) -> AppInfo:
    """An app as `GET /v1/apps` shows it at the unix second `at`, without what looks like a secret."""
    running: dict[object, int] = {}
    for container in containers:
        running[container.get("version")] = running.get(container.get("version"), 0) + 1
    functions = []
    for name, version_id in record.named_functions.items():
        version = registry.version(version_id)
        if version is not None:
            functions.append(
                FunctionInfo(
                    name=name,
                    version=version_name(record, name, version_id),
                    version_id=version_id,
                    containers=running.get(version_id, 0),
                    spec=msgspec.structs.replace(version.spec, env=masked(version.spec.env)),
                    artifacts=version.artifacts,
                    schedules=tuple(_schedule_info(record, method, at) for method in methods_of(version)),
                    hooks=_hooks_info(version, running),
                )
            )
    return AppInfo(
        app=record.app,
        revision=record.revision,
        deployed_at=next((line.at for line in reversed(record.history) if line.traffic), 0.0),
        stopped=record.stopped,
        functions=tuple(functions),
    )


def _hooks_info(version: VersionRecord, running: dict[object, int]) -> tuple[HookInfo, ...]:
    hooks = {} if version.spec.pipeline is UNSET else version.spec.pipeline.hooks
    return tuple(
        HookInfo(stage=kind.value, version_id=hook.version, containers=running.get(hook.version, 0))
        for kind, hook in hooks.items()
    )


def _schedule_info(record: AppRecord, method: ScheduledMethod, at: float) -> ScheduleInfo:
    runs = not record.stopped and not record.ends_at
    return ScheduleInfo(
        schedule=method.schedule, next_tick=next_tick(method.schedule, method.who, at) if runs else None
    )


def deploy_lines(record: AppRecord) -> list[DeployLine]:
    """An app's history, oldest first."""
    lines = []
    for line in record.history:
        shown = {name: id_ for name, id_ in line.functions.items() if not is_companion(name)}
        names = {name: version_name(record, name, id_).partition("@")[2] for name, id_ in shown.items()}
        lines.append(
            msgspec.convert(msgspec.structs.asdict(line) | {"functions": shown, "versions": names}, DeployLine)
        )
    return lines


def own_app(record: AppRecord | None, app: str) -> AppRecord:
    """`record`, if there is one.

    Raises:
        NotFound: there is none.
    """
    if record is None:
        raise NotFound(f"There is no app {app}.")
    return record
