"""The record of an app's rollouts."""

import msgspec
from msgspec.structs import replace

from pilotlight_core.model.rollouts.rollout_record import Rollout, RolloutRecord, RolloutState

ROLLOUT = Rollout(
    id="rol_1", number=1, control={"f": "ver_old"}, canary={"f": "ver_new"}, twins={"f": "ver_twin"}, salt=b"s" * 32,
    since=0.0, started_at=0.0, by="key_1",
)  # fmt: skip
RECORD = RolloutRecord(tenant="t", app="a", revision=1, aliases={"f": {"prod": "ver_0"}}, rollout=ROLLOUT)


def test_versions_of_a_running_rollout_and_of_aliases_are_kept() -> None:
    assert RECORD.kept_versions() == {"ver_0", "ver_old", "ver_new", "ver_twin"}
    ended = replace(RECORD, rollout=replace(ROLLOUT, state=RolloutState.ROLLED_BACK))
    assert ended.kept_versions() == {"ver_0"}
    assert ended.running is None


def test_an_alias_is_of_one_function() -> None:
    assert RECORD.alias("f", "prod") == "ver_0"
    assert RECORD.alias("g", "prod") is None


def test_a_record_is_read_as_it_was_written() -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(RECORD), type=RolloutRecord) == RECORD
