"""An app's record after deploys and stops, and which of its versions are kept."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.errors import Conflict, NotFound
from pilotlight_core.model.spec import AppRecord
from pilotlight_gateway.deploys.app_records import (
    DEPLOYS_KEPT,
    RECORD_BYTES,
    deploy_before,
    deploy_lines,
    deployed,
    moved_record,
    next_record,
    registered_by,
    removed,
    stopped_record,
    version_name,
)


def deploy(record: AppRecord | None, functions: dict[str, str], at: float = 1.0, keep: int = 1_000) -> AppRecord | None:
    return next_record(record, tenant="acme", app="shop", functions=functions, by="key", at=at, message="", keep=keep)


def deployed_once(functions: dict[str, str]) -> AppRecord:
    record = deploy(None, functions)
    assert record is not None
    return record


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
    assert third.number_of("a", "ver_1") == 1
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

    full = msgspec.structs.replace(record, functions={f"f{number}": "v" * 5_000 for number in range(200)})
    with pytest.raises(Conflict, match="divide it"):
        deploy(full, full.functions | {"a": "ver_new"})


def test_the_newest_versions_are_kept_under_their_numbers() -> None:
    """Older ones are forgotten; a version that is deployed again is not."""
    record: AppRecord | None = None
    for number in range(1, 6):
        record = deploy(record, {"a": f"ver_{number}"}, keep=3)
    assert record is not None
    assert record.versions == {"a": ("ver_3", "ver_4", "ver_5")}
    assert (record.number_of("a", "ver_3"), record.number_of("a", "ver_2")) == (3, None)
    assert (record.version_at("a", 5), record.version_at("a", 2), record.version_at("a", 6)) == ("ver_5", None, None)
    assert version_name(record, "a", "ver_2") == "shop.a@ver_2"

    back = deploy(record, {"a": "ver_3"}, keep=3)
    assert back is not None
    fewer = deploy(back, {"a": "ver_3", "b": "ver_b"}, keep=1)
    assert fewer is not None
    assert fewer.versions == {"a": ("ver_3", "ver_4", "ver_5"), "b": ("ver_b",)}
    assert fewer.newest_number("a") == 5


def test_a_function_that_was_long_gone_is_forgotten() -> None:
    """When no deploy of the history has it."""
    record = deployed_once({"a": "ver_a", "old": "ver_old"})
    for number in range(DEPLOYS_KEPT - 1):
        record = deploy(record, {"a": f"ver_{number}"}) or record
    assert "old" in record.versions

    record = deploy(record, {"a": "ver_last"}) or record

    assert "old" not in record.versions


def test_what_a_deploy_removes() -> None:
    """Functions in service that it does not have; of a stopped app there are none."""
    record = deployed_once({"a": "ver_1", "b": "ver_2"})
    stopped = stopped_record(record, by="key", at=2.0)

    assert removed(record, ["b", "c"]) == ("a",)
    assert removed(record, ["a", "b"]) == ()
    assert removed(None, ["a"]) == ()
    assert removed(stopped, ["c"]) == ()


def test_kept_versions_of_a_class_have_their_hooks() -> None:
    """Also where a later version of it goes back to an earlier one of a hook."""
    record = deployed_once({"W": "ver_1", "W~pre": "pre_1"})
    for class_version, hook in (("ver_2", "pre_2"), ("ver_3", "pre_1"), ("ver_4", "pre_3")):
        after = deploy(record, {"W": class_version, "W~pre": hook}, keep=2)
        assert after is not None
        record = after

    assert record.versions == {"W": ("ver_3", "ver_4"), "W~pre": ("pre_1", "pre_3")}
    assert removed(record, ["W"]) == ()
    assert removed(record, []) == ("W",)
    assert [one.name for one in deployed(record, None)] == ["W"]


def moved(record: AppRecord, functions: dict[str, str], back_to: int = 0) -> AppRecord:
    after = moved_record(record, functions, by="key", at=9.0, message="", back_to=back_to)
    assert after is not None
    return after


def registered(record: AppRecord | None, functions: dict[str, str], **more: object) -> AppRecord:
    """As after `deploy --no-traffic`."""
    arguments = {"by": "key", "at": 5.0, "message": "", "traffic": False, **more}
    after = next_record(record, tenant="acme", app="shop", functions=functions, **arguments)  # type: ignore[arg-type]
    assert after is not None
    return after


def test_a_deploy_without_traffic_only_gives_its_versions_numbers() -> None:
    """What is deployed stays, and the history says which lines served."""
    before = deployed_once({"a": "ver_1"})
    after = registered(before, {"a": "ver_2"})

    assert (after.functions, after.number_of("a", "ver_2"), after.revision) == ({"a": "ver_1"}, 2, 2)
    assert [line.traffic for line in deploy_lines(after)] == [True, False]
    assert next_record(
        after, tenant="acme", app="shop", functions={"a": "ver_2"}, by="key", at=6.0, message="", traffic=False
    ) is None  # fmt: skip
    assert registered(None, {"a": "ver_1"}).functions == {}


def test_a_version_that_is_registered_again_has_the_last_line_without_traffic() -> None:
    """A rollout is started by that line: of another version than the last one it is made anew, of the same it is
    found, and what is in service has none.
    """

    def line_of(functions: dict[str, str]) -> tuple[int | None, int]:
        arguments: dict[str, Any] = {"by": "key", "at": 6.0, "message": "", "traffic": False}
        found = next_record(before, tenant="acme", app="shop", functions=functions, **arguments)
        return registered_by(found or before, functions), (found or before).revision

    before = registered(registered(deployed_once({"a": "ver_1"}), {"a": "ver_2"}), {"a": "ver_3"})
    assert line_of({"a": "ver_3"}) == (3, 3)
    assert line_of({"a": "ver_2"}) == (4, 4)
    before = moved(before, {"a": "ver_2"})
    assert line_of({"a": "ver_3"}) == (3, 4)
    assert line_of({"a": "ver_2"}) == (None, 4)
    assert line_of({"a": "ver_1"}) == (5, 5)


def test_a_stopped_app_stays_so_after_a_deploy_without_traffic() -> None:
    """Only what serves starts it again."""
    stopped = stopped_record(deployed_once({"a": "ver_1"}), by="key", at=2.0)

    assert registered(stopped, {"a": "ver_2"}).stopped


def test_going_back_twice_goes_back_twice() -> None:
    """Whoever asks again in a hurry must not get the bad version back."""
    one = deployed_once({"a": "ver_1"})
    two = moved(one, {"a": "ver_2"})
    three = moved(registered(two, {"a": "ver_x"}), {"a": "ver_3"})
    first = deploy_before(three)
    back = moved(three, first.functions, first.revision)
    second = deploy_before(back)

    assert (first.functions, second.functions) == ({"a": "ver_2"}, {"a": "ver_1"})
    assert deploy_before(back, three.revision).functions == {"a": "ver_3"}
    with pytest.raises(NotFound, match="nothing to go back to"):
        deploy_before(moved(back, second.functions, second.revision))
    with pytest.raises(NotFound, match="no deploy of revision 77"):
        deploy_before(back, 77)
    assert moved_record(back, back.functions, by="key", at=9.0, message="") is None


def test_versions_that_aliases_or_a_rollout_name_are_kept() -> None:
    """However many have come since; what is newer keeps its number."""
    record = deployed_once({"a": "ver_1"})
    for number in range(2, 6):
        record = registered(record, {"a": f"ver_{number}"}, keep=1, named={"ver_2"})
    record = moved(record, {"a": "ver_5"})
    after = registered(record, {"a": "ver_6"}, keep=1, named={"ver_2"})

    assert after.version_at("a", 2) == "ver_2"
    assert registered(after, {"a": "ver_7"}, keep=1).versions == {"a": ("ver_5", "ver_6", "ver_7")}
