"""What a deploy amounts to."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.api.call_api import DeployFunction, DeployRequest
from pilotlight_core.model.errors import BadInput, Conflict
from pilotlight_core.model.spec import AppRecord, FunctionSpec, MethodSpec
from pilotlight_gateway.deploys.deploy_plan import (
    DEPLOYS_KEPT,
    RECORD_BYTES,
    VERSIONS_PER_FUNCTION,
    check_deploy,
    deployed,
    manifests_of,
    next_record,
    number_of,
    stopped_record,
)
from tests.gateway.world import HELLO, entry, function


def request(*specs: FunctionSpec, **more: object) -> DeployRequest:
    functions = tuple(DeployFunction(spec=spec) for spec in specs or (function(),))
    made = DeployRequest(functions=functions, files=(entry(b"b", "b.py"), entry(b"a", "a.py")))
    return msgspec.structs.replace(made, **more)


def deploy(record: AppRecord | None, functions: dict[str, str], at: float = 1.0) -> AppRecord | None:
    return next_record(record, tenant="acme", app="shop", functions=functions, by="key", at=at, message="")


def deployed_once(functions: dict[str, str]) -> AppRecord:
    record = deploy(None, functions)
    assert record is not None
    return record


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (request(base="../x"), "base"),
        (request(message="x" * 501), "message"),
        (request(message="a\x1b[31m"), "message"),
        (request(functions=()), "functions"),
        (request(function("a"), function("a")), "functions"),
        (request(function("a.b")), "function"),
        (request(function("a", module="os; rm")), "module"),
        (request(function("a", HELLO, HELLO)), "methods"),
        (request(function("a", cpu=0.0)), "cpu"),
        (request(function("a", MethodSpec(name="", attribute="x", input_schema={"$ref": "#"}))), "a.x.input_schema"),
        (request(files=()), "files"),
        (request(files=(entry(b"x", "../x"),)), "files.0.path"),
    ],
)
def test_a_deploy_that_must_not_become_versions_is_refused(wrong: DeployRequest, field: str) -> None:
    """Each rule names its field."""
    with pytest.raises(BadInput) as caught:
        check_deploy("shop", wrong)

    assert caught.value.more["field"] == field


def test_the_same_content_is_the_same_version() -> None:
    """Neither the order of files nor another message makes a new version; another base does."""
    (one,) = manifests_of("acme", "shop", request())
    (same,) = manifests_of("acme", "shop", request(files=tuple(reversed(request().files)), message="again"))
    (other,) = manifests_of("acme", "shop", request(base="torch"))

    assert one.version_id == same.version_id
    assert one.version_id != other.version_id
    assert manifests_of("rival", "shop", request())[0].version_id != one.version_id


def test_a_repeated_deploy_changes_nothing() -> None:
    """A client that asks again after a lost answer makes no new revision."""
    assert deploy(deployed_once({"a": "ver_1"}), {"a": "ver_1"}) is None


def test_a_deploy_replaces_the_app_whole() -> None:
    """What is not in it is not deployed any more, but keeps its versions and numbers."""
    first = deployed_once({"a": "ver_1", "b": "ver_2"})
    second = deploy(first, {"a": "ver_3"})
    assert second is not None
    third = deploy(second, {"a": "ver_1"})
    assert third is not None

    assert (second.revision, second.functions) == (2, {"a": "ver_3"})
    assert third.versions == {"a": ("ver_1", "ver_3"), "b": ("ver_2",)}
    assert number_of(third, "a", "ver_1") == 1
    assert [line.functions for line in third.history] == [{"a": "ver_1", "b": "ver_2"}, {"a": "ver_3"}, {"a": "ver_1"}]
    changed = {line.name: (line.version, line.changed) for line in deployed(second, first)}
    assert changed == {"a": ("shop.a@v2", True)}


def test_stopping_is_a_revision_that_a_deploy_undoes() -> None:
    """A stopped app deploys the same content again as a change."""
    record = deployed_once({"a": "ver_1"})
    stopped = stopped_record(record, by="key", at=2.0)
    assert stopped is not None

    assert (stopped.stopped, stopped.revision) == (True, 2)
    assert stopped_record(stopped, by="key", at=3.0) is None
    started = deploy(stopped, {"a": "ver_1"})
    assert started is not None
    assert (started.stopped, started.revision) == (False, 3)


def test_history_and_record_stay_within_bounds() -> None:
    """The last hundred deploys are kept, fewer where the record would outgrow a message; then it is refused."""
    record: AppRecord | None = None
    for number in range(DEPLOYS_KEPT + 5):
        record = deploy(record, {"a": f"ver_{number}"})
    assert record is not None
    assert [line.revision for line in record.history] == list(range(6, DEPLOYS_KEPT + 6))

    wide = {f"f{number:03d}": f"ver_{number:032d}" for number in range(200)}
    record = None
    for number in range(DEPLOYS_KEPT):
        record = deploy(record, wide | {"f000": f"ver_{number}"})
    assert record is not None
    assert len(msgspec.msgpack.encode(record)) <= RECORD_BYTES
    assert 1 < len(record.history) < DEPLOYS_KEPT

    full = msgspec.structs.replace(record, versions={"a": tuple(map(str, range(VERSIONS_PER_FUNCTION)))})
    with pytest.raises(Conflict):
        deploy(full, {"a": "ver_new"})
