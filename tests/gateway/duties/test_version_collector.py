"""Versions that are not kept any more are deleted, and no others."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import msgspec
import pytest

from pilotlight_core.bus import Bus, connect
from pilotlight_core.host.registry import Registry
from pilotlight_core.model.api.curve_api import CurvesRecord
from pilotlight_core.model.pipelines.pipeline import CallHook, Pipeline
from pilotlight_core.model.records.files import FileRecord
from pilotlight_core.model.rollouts.rollout_moves import ended
from pilotlight_core.model.rollouts.rollout_record import Rollout, RolloutRecord, RolloutState
from pilotlight_core.model.spec import AppRecord, DeployRecord, VersionRecord
from pilotlight_core.model.versions.pushed_weights import REMOVED_KEPT_S, WeightsRecord, WeightsRevision
from pilotlight_gateway.duties.version_collector import TRIAL_S, YOUNG_S, StoredVersion, VersionCollector, is_needed
from pilotlight_supervisor.embedded_bus import embedded_nats
from tests.builders.specs import function_spec, version_record
from tests.gateway.batches.makers import batch

AT = 1_000_000.0
OLD = AT - 10 * YOUNG_S


def stored(id_: str, *, created_at: float = OLD, renewed_at: float = 0.0, **spec: object) -> VersionRecord:
    record = version_record(function_spec("f", **spec), id=id_, tenant="acme", app="shop", created_at=created_at)
    return msgspec.structs.replace(record, renewed_at=renewed_at)


def read(record: VersionRecord) -> StoredVersion:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(record), type=StoredVersion)


def curves_of(version: str, _: CurvesRecord | None) -> CurvesRecord:
    return CurvesRecord(version=version)


def app(*history: tuple[float, str], versions: tuple[str, ...] = ()) -> AppRecord:
    """An app whose function f was deployed at these seconds."""
    lines = tuple(
        DeployRecord(revision=number, at=at, by="k", functions={"f": id_})
        for number, (at, id_) in enumerate(history, 1)
    )
    functions = lines[-1].functions if lines else {}
    return AppRecord(
        tenant="acme", app="shop", revision=1, functions=functions, versions={"f": versions}, history=lines
    )


def test_a_version_is_needed_while_its_app_has_it() -> None:
    """Deployed or kept; also as what was deployed until lately, whose calls may still run."""
    version = read(stored("ver_1", timeout=600.0))
    long_ago, lately = AT - YOUNG_S - 601.0, AT - YOUNG_S - 599.0

    assert is_needed(version, app((OLD, "ver_1")), AT)
    assert is_needed(version, app((OLD, "ver_1"), (OLD + 1, "ver_2"), versions=("ver_1", "ver_2")), AT)
    assert is_needed(version, app((OLD, "ver_1"), (lately, "ver_2"), versions=("ver_2",)), AT)
    assert not is_needed(version, app((OLD, "ver_1"), (long_ago, "ver_2"), versions=("ver_2",)), AT)
    assert not is_needed(version, app((OLD, "ver_2"), versions=("ver_2",)), AT)
    assert not is_needed(version, None, AT)


def test_a_version_is_needed_while_it_is_young() -> None:
    """Its app's record may be about to be written; a deploy that finds it renews it. A trial has a day."""
    assert is_needed(read(stored("ver_1", created_at=AT - YOUNG_S + 1)), None, AT)
    assert not is_needed(read(stored("ver_1", created_at=AT - YOUNG_S - 1)), None, AT)
    assert is_needed(read(stored("ver_1", renewed_at=AT - YOUNG_S + 1)), None, AT)
    trial = msgspec.structs.replace(function_spec("f").placing, slice="H100/whole")
    assert is_needed(read(stored("ver_1", created_at=AT - TRIAL_S + 1, placing=trial)), None, AT)
    assert not is_needed(read(stored("ver_1", created_at=AT - TRIAL_S - 1, placing=trial)), None, AT)


def test_a_version_is_needed_while_a_rollout_or_an_alias_names_it() -> None:
    """A twin is in no app's record; it stays for as long as its last call may run."""
    twin, deployed = read(stored("ver_twin", timeout=600.0)), app((OLD, "ver_1"), versions=("ver_1",))
    rollout = Rollout(
        id="rol_1", number=1, control={"f": "ver_1"}, canary={"f": "ver_2"}, twins={"f": "ver_twin"}, salt=b"",
        state=RolloutState.RAMP, since=OLD, started_at=OLD, by="k",
    )  # fmt: skip
    running = RolloutRecord(tenant="acme", app="shop", revision=1, rollout=rollout)
    aliased = RolloutRecord(tenant="acme", app="shop", revision=1, aliases={"f": {"prod": "ver_old"}})

    def over(ended_at: float) -> RolloutRecord:
        return ended(msgspec.structs.replace(running), ended_at, RolloutState.SUPERSEDED)

    assert not is_needed(twin, deployed, AT)
    assert is_needed(twin, deployed, AT, running)
    assert is_needed(twin, deployed, AT, over(AT - YOUNG_S))
    assert not is_needed(twin, deployed, AT, over(AT - YOUNG_S - 601.0))
    assert is_needed(read(stored("ver_old")), deployed, AT, aliased)


def test_what_was_only_registered_was_never_served() -> None:
    """It took nobody's place."""
    lines = app((OLD, "ver_1"), (AT - 10.0, "ver_2"), versions=("ver_2",))
    before, after = lines.history
    registered = msgspec.structs.replace(
        lines, functions={"f": "ver_3"}, history=(before, msgspec.structs.replace(after, traffic=False))
    )

    assert is_needed(read(stored("ver_1")), lines, AT)
    assert not is_needed(read(stored("ver_1")), registered, AT)


@pytest.fixture
async def own_bus(tmp_path: Path) -> AsyncIterator[Bus]:
    async with embedded_nats(tmp_path) as server, connect(server.url, name="collector") as bus:
        yield bus


async def test_what_nothing_needs_is_deleted_with_its_curves(own_bus: Bus) -> None:
    """What a job or a batch may run stays, whoever deployed what since."""
    async with Registry(own_bus) as registry:
        for id_ in ("ver_kept", "ver_dead", "ver_job", "ver_batch", "ver_ended"):
            await registry.put_version(stored(id_))
            await registry.change_curves(id_, partial(curves_of, id_))
        await registry.deploy(app((OLD, "ver_kept"), versions=("ver_kept",)), 0)
        for id_, ended_at in (("ver_batch", 0.0), ("ver_ended", OLD)):
            record = batch("acme", id=f"batch_{id_}", version=id_, ended_at=ended_at)
            await own_bus.kv("BATCHES").put(record.key, msgspec.msgpack.encode(record))

        assert await VersionCollector(own_bus).collect({"ver_job"}, AT) == 2

        assert {key.id for key in registry.versions()} >= {"ver_kept", "ver_job", "ver_batch"}
    async with Registry(own_bus) as anew:
        assert {version.id for version in anew.versions("acme")} == {"ver_kept", "ver_job", "ver_batch"}
        assert anew.curves("ver_dead") is None
        assert anew.curves("ver_kept") is not None
    assert await VersionCollector(own_bus).collect({"ver_job"}, AT) == 0


async def test_what_runs_hooks_stays_as_long_as_its_class(own_bus: Bus) -> None:
    """Of a class that its app keeps, and of one that a job or a batch may run; of others it goes with them."""
    async with Registry(own_bus) as registry:
        for name in ("kept", "job", "batch", "dead"):
            hooks = Pipeline(preprocess=CallHook(attribute="read", version=f"ver_pre_{name}"), takes={"": "a"})
            await registry.put_version(stored(f"ver_{name}", is_class=True, pipeline=hooks))
            await registry.put_version(stored(f"ver_pre_{name}", is_class=True))
        await registry.deploy(app((OLD, "ver_kept"), versions=("ver_kept",)), 0)
        record = batch("acme", id="batch_1", version="ver_batch")
        await own_bus.kv("BATCHES").put(record.key, msgspec.msgpack.encode(record))

        assert await VersionCollector(own_bus).collect({"ver_job"}, AT) == 2

        left = {version.id for version, _ in (await VersionCollector(own_bus).stored()).values()}
        of = ("kept", "job", "batch")
        assert left == {f"ver_{name}" for name in of} | {f"ver_pre_{name}" for name in of}


async def test_a_version_that_is_deployed_anew_meanwhile_stays(own_bus: Bus) -> None:
    """The deploy's renewal and the delete are of one record: one of them fails, and the deploy stores it again."""
    collector = VersionCollector(own_bus)
    async with Registry(own_bus) as registry:
        await registry.put_version(stored("ver_1"))
        before = await collector.stored()
        await registry.put_version(stored("ver_1", created_at=time.time()))

        (key,) = before
        assert not await collector._delete(key, "ver_1", before[key][1])
        assert registry.version("ver_1") is not None

        after = await collector.stored()
        assert await collector._delete(key, "ver_1", after[key][1])
        await registry.put_version(stored("ver_1", created_at=time.time()))
        assert [version.id for version, _ in (await collector.stored()).values()] == ["ver_1"]


async def test_records_of_weights_that_were_removed_are_forgotten(own_bus: Bus) -> None:
    """A day after the last one was; one that has some, or was just removed, stays."""

    def record(name: str, removed_at: float) -> WeightsRecord:
        one = WeightsRevision(
            digest="1" * 64, files=1, parts=1, size=1, pushed_at=0.0, pushed_by="k", removed_at=removed_at
        )
        return WeightsRecord(tenant="acme", name=name, revisions=(one,))

    collector = VersionCollector(own_bus)
    async with Registry(own_bus) as registry:
        for name, removed_at in (("there", 0.0), ("lately", AT - 1), ("gone", AT - REMOVED_KEPT_S)):
            await registry.change_weights("acme", name, partial(lambda made, _: made, record(name, removed_at)))
        assert {one.name for one in await collector.weights()} == {"there", "lately", "gone"}
        assert {one.name for one in registry.iter_weights("acme")} == {"there", "lately", "gone"}
        assert await registry.weights("rival", "there") is None
        assert registry.bytes_of("acme") > 0

        await collector.collect((), AT)

        assert {one.name for one in await collector.weights()} == {"there", "lately"}


async def test_records_of_files_that_have_expired_are_forgotten(own_bus: Bus) -> None:
    """The others stay, and what they need is known."""

    def record(file_id: str, expires_at: float) -> FileRecord:
        return FileRecord(
            tenant="acme", id=file_id, name="in", purpose="batch", size=1, created_at=0.0, expires_at=expires_at,
            by="k", parts=(),
        )  # fmt: skip

    collector = VersionCollector(own_bus)
    async with Registry(own_bus) as registry:
        for file_id, expires_at in (("file-there", AT + 1), ("file-gone", AT)):
            await registry.change_file("acme", file_id, partial(lambda made, _: made, record(file_id, expires_at)))
        assert {one.id for one in await collector.files()} == {"file-there", "file-gone"}

        await collector.collect((), AT)

        assert {one.id for one in await collector.files()} == {"file-there"}
