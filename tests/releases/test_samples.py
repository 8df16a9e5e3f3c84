"""A value of every message and record of every release that is kept is read by this one, and means what it meant."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec

from tests.releases.make_samples import enums, samples
from tests.releases.old_tree import old_python
from tests.releases.stored_release import RELEASES, StoredRelease, each_release
from tests.releases.stored_types import JSON_FILES, MESSAGES, RECORDS


def is_within(old: Any, new: Any) -> bool:
    """Whether all that was read is there and the same; there may be more fields now."""
    if isinstance(old, dict) and isinstance(new, dict):
        return all(key in new and is_within(value, new[key]) for key, value in old.items())
    if isinstance(old, list) and isinstance(new, list):
        return len(old) <= len(new) and all(map(is_within, old, new))
    return bool(old == new)


def whole(value: Any) -> Any:
    """What was read, with all fields of each struct: some leave out what goes without saying when they are written."""
    if isinstance(value, msgspec.Struct):
        read = ((field.encode_name, getattr(value, field.name)) for field in msgspec.structs.fields(value))
        fields = {name: whole(one) for name, one in read if one is not msgspec.UNSET}
        return list(fields.values()) if value.__struct_config__.array_like else tagged(value) | fields
    if isinstance(value, dict):
        return {key: whole(one) for key, one in value.items()}
    return [whole(one) for one in value] if isinstance(value, list | tuple) else value


def tagged(value: msgspec.Struct) -> dict[str, Any]:
    config = value.__struct_config__
    return {config.tag_field: config.tag} if config.tag_field is not None else {}


@each_release
def test_what_it_wrote_is_read_as_it_was(release: StoredRelease) -> None:
    """With the least fields and with all: no field is gone, and no default has another value."""
    for name, data, read in release.samples():
        if name in JSON_FILES:
            found: Any = msgspec.json.decode(data, type=JSON_FILES[name])
        else:
            found = msgspec.msgpack.decode(data, type=(MESSAGES | RECORDS)[name])
        now = json.loads(msgspec.json.encode(whole(found)))
        assert is_within(read, now), f"{name}: {read} is read as {now}"


def test_what_this_release_writes_is_read_by_the_one_before(tmp_path: Path) -> None:
    """All of it that says nothing new; what it refuses where something is new is known: docs/upgrading.md says it."""
    tree = RELEASES[0].unpack("source", tmp_path / "tree")
    python = old_python(tree, tmp_path / "venv")
    (tmp_path / "samples.json").write_text(json.dumps({"samples": samples()}))
    done = subprocess.run(
        [python, "-m", "tests.releases.read_samples", tmp_path / "samples.json"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert json.loads(done.stdout) == {
        "least": [],
        # States of containers, limits on tokens, and limits of the sandbox in a specification.
        "full": ["UsageBatch", "ToLimitHome", "Tier", "LimitsRecord", "VersionRecord", "UsageRecord", "Manifest"],
        "unknown": [
            "Demands",
            "Keep",
            "Park",
            "Unpark",
            "PlannedStarts",
            "KeepBlanks",
            "Prefetch",
            "LinkSwitch",
            "LinkOffer",
            "GatewayLoad",
            "Shortages",
            "RenewNode",
            "NodeRenewal",
            "AskNested",
            "NestedAnswer",
            "LeaveNested",
            "SecretsWanted",
            "SecretsAnswer",
            "ErasedWanted",
            "ErasedTenants",
            "LockPackages",
            "PackagesLocked",
            "DescribePackages",
            "PackagesDescribed",
            "StreamCheckpoint",
            "AskEvents",
            "StreamEvents",
            "ChunkGroup",
            "TraceBatch",
            "AskKept",
            "KeptTold",
            "AskTallies",
            "TalliesTold",
            "PlatformEvent",
            "ComparedCalls",
            "StorageWanted",
            "StorageAnswer",
            "BudgetsRecord",
            "CreditsRecord",
            "NodeRecord",
            "JoinTokenRecord",
            "IssuerRecord",
            "PoolRecord",
            "LaunchRecord",
            "SessionRecord",
            "PriceRecord",
            "ScaleRecord",
            "WeightsRecord",
            "ModelRecord",
            "FileRecord",
            "RolloutRecord",
            "PolicyRecord",
            "VerdictRecord",
            "HomeTranches",
            "BilledBudgets",
            "KeySet",
            "SignedKeySet",
            "TrustRecord",
            "SecretRecord",
            "DataKeyRecord",
            "PlatformKeyRecord",
        ],
    }


@each_release
def test_no_value_of_an_enumeration_is_gone(release: StoredRelease) -> None:
    """They are in records."""
    now = enums()
    for name, values in release.enums.items():
        assert set(values) <= set(now[name]), name


def test_every_type_that_is_stored_or_sent_has_its_sample() -> None:
    """Of the releases that are kept the newest knows all but what came since."""
    known = {name for name, _, _ in RELEASES[-1].samples()}
    assert known <= {*MESSAGES, *RECORDS, *JSON_FILES}
    assert len(known) > 60


def test_a_difference_is_seen() -> None:
    """The comparison itself."""
    assert is_within({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2, "c": 3}, 4], "d": 5})
    assert not is_within({"a": 1}, {"b": 1})
    assert not is_within({"a": [1]}, {"a": [2]})
    assert not is_within([1, 2], [1])
