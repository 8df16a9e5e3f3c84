"""A version's bytes and its identity, in this release and the next."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.spec import (
    SLO,
    ArtifactEntry,
    ArtifactKind,
    ArtifactPart,
    Batching,
    FileEntry,
    FunctionSpec,
    Manifest,
    MethodSpec,
)
from pilotlight_core.model.versions import manifest_codec
from pilotlight_core.model.versions.manifest_codec import (
    ARTIFACTS,
    DRAIN_HOOKS,
    FEATURES,
    FIELDS_OF_0_1,
    MAX_UNITS,
    NETWORK,
    SANDBOX_LIMITS,
    SECRET_FILES,
    SECRETS,
    SERVED_NAMES,
    USAGE_TAGS,
    encode_manifest,
    lacking_features,
    needs_of,
    version_id,
)
from tests.builders.specs import function_spec, id_of, manifest, method

FILE = FileEntry("app.py", "00" * 32, 10)
FULL = manifest(
    function_spec(
        "greet",
        method(batching=Batching(max_batch_size=8), input_schema={"type": "object", "properties": {"b": {}, "a": {}}}),
        env={"B": "2", "A": "1"}, slo=SLO(p95_ms=5.0), vram=2**30,
    ),
    FILE,
)  # fmt: skip


class Newer(FunctionSpec, frozen=True, kw_only=True):
    """A specification of a later release."""

    colour: str = "none"
    colours: tuple[str, ...] = ()


class NewerManifest(Manifest, frozen=True, kw_only=True):
    """A manifest of a later release."""

    spec: Newer


def test_the_version_is_the_content() -> None:
    """The same manifest always has the same id; any change gives another."""
    same = msgspec.json.decode(encode_manifest(FULL), type=Manifest)

    assert same == FULL
    assert id_of(same) == id_of(FULL)
    assert id_of(msgspec.structs.replace(FULL, spec=function_spec(timeout=5.0))) != id_of(FULL)


def test_the_order_of_names_does_not_matter() -> None:
    """Of variables, and within a schema."""
    turned = dict(reversed(FULL.spec.env.items()))
    assert id_of(msgspec.structs.replace(FULL, spec=msgspec.structs.replace(FULL.spec, env=turned))) == id_of(FULL)


def test_what_release_0_1_knows_is_written_as_it_wrote_it() -> None:
    """All of its fields, whatever their values: its agents check that."""
    known = _sorted(msgspec.to_builtins(FULL))
    known["spec"] = dict(list(known["spec"].items())[: FIELDS_OF_0_1[FunctionSpec]])
    assert encode_manifest(FULL) == msgspec.json.encode(dict(list(known.items())[: FIELDS_OF_0_1[Manifest]]))


def test_fields_that_came_later_are_written_where_they_say_something(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that adds one renumbers nothing; one that uses it makes a version of its own."""
    for newer, known in ((Newer, FunctionSpec), (NewerManifest, Manifest)):
        monkeypatch.setitem(manifest_codec.FIELDS_OF_0_1, newer, FIELDS_OF_0_1[known])
    plain = msgspec.json.decode(encode_manifest(FULL), type=NewerManifest)
    red = msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, colour="red"))

    assert encode_manifest(plain) == encode_manifest(FULL)
    assert b'"colour":"red"' in encode_manifest(red)
    assert b"colours" not in encode_manifest(red)
    # An older release reads what it knows, and names the version as everybody does.
    assert msgspec.json.decode(encode_manifest(red), type=Manifest) == FULL
    assert version_id(encode_manifest(red)) != version_id(encode_manifest(plain))


def test_what_is_needed_and_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorted; what is there is not."""
    needy = msgspec.structs.replace(FULL, needs=("wings", "engines", "legs"))
    monkeypatch.setattr(manifest_codec, "FEATURES", frozenset({"legs"}))
    assert lacking_features(needy) == ["engines", "wings"]
    assert lacking_features(FULL) == []


def test_artifacts_are_part_of_the_version_and_need_an_agent_that_lays_them_out() -> None:
    """A manifest without any needs nothing, and is written as before."""
    part = ArtifactPart("model.bin", "00" * 32, 10)
    tiny = ArtifactEntry(kind=ArtifactKind.WEIGHTS, name="tiny", parts=(part,))
    made = msgspec.structs.replace(FULL, artifacts=(tiny,))

    assert needs_of(FULL.spec, FULL.artifacts) == ()
    assert needs_of(made.spec, made.artifacts) == (ARTIFACTS,)
    assert ARTIFACTS in FEATURES
    assert id_of(made) != id_of(FULL)
    assert msgspec.json.decode(encode_manifest(made), type=Manifest) == made
    assert b'"artifacts":[{"kind":"weights","name":"tiny","parts":[{"path":"model.bin"' in encode_manifest(made)


def test_limits_of_the_sandbox_are_a_feature() -> None:
    """Each of them; what names none needs nothing that agents of 0.1 lack."""
    for limited in (function_spec(shm=2**20), function_spec(scratch=2**20), function_spec(pids=64)):
        assert needs_of(limited) == (SANDBOX_LIMITS,)
    assert SANDBOX_LIMITS in FEATURES
    assert needs_of(FULL.spec) == ()


def test_tags_are_a_feature_and_part_of_the_version() -> None:
    """Agents of 0.1 refuse the field; without it a manifest is written as before."""
    tagged = msgspec.structs.replace(FULL, spec=msgspec.structs.replace(FULL.spec, tags={"b": "2", "a": "1"}))

    assert needs_of(tagged.spec) == (USAGE_TAGS,)
    assert USAGE_TAGS in FEATURES
    assert encode_manifest(tagged).count(b'"tags":{"a":"1","b":"2"}') == 1
    assert id_of(tagged) != id_of(FULL)


def test_units_of_a_call_at_most_are_a_feature() -> None:
    """Agents of 0.1 refuse the field."""
    naming = msgspec.structs.replace(FULL, spec=msgspec.structs.replace(FULL.spec, max_units={"images": 3}))

    assert needs_of(naming.spec) == (MAX_UNITS,)
    assert MAX_UNITS in FEATURES
    assert encode_manifest(naming).count(b'"max_units":{"images":3}') == 1


def test_drain_hooks_are_a_feature() -> None:
    """An agent that does not run them would lose what they write."""
    hooked = msgspec.structs.replace(FULL, spec=msgspec.structs.replace(FULL.spec, drain=("save",)))

    assert needs_of(hooked.spec) == (DRAIN_HOOKS,)
    assert DRAIN_HOOKS in FEATURES
    assert encode_manifest(hooked).count(b'"drain":["save"]') == 1


def test_names_of_models_are_a_feature() -> None:
    """Agents of 0.1 refuse the field."""
    served = msgspec.structs.replace(FULL, spec=msgspec.structs.replace(FULL.spec, serves=("acme/tiny",)))

    assert needs_of(served.spec) == (SERVED_NAMES,)
    assert SERVED_NAMES in FEATURES
    assert encode_manifest(served).count(b'"serves":["acme/tiny"]') == 1


def test_a_network_is_a_feature() -> None:
    """An agent that knows no way out must not run what needs one."""
    named = msgspec.structs.replace(FULL, spec=msgspec.structs.replace(FULL.spec, network=("a.example.com:443",)))

    assert needs_of(named.spec) == (NETWORK,)
    assert NETWORK in FEATURES
    assert encode_manifest(named).count(b'"network":["a.example.com:443"]') == 1


def _sorted(value: Any) -> Any:
    """With the names of schemas and variables in order, those of structs as they are."""
    value["spec"]["env"] = dict(sorted(value["spec"]["env"].items()))
    for one in value["spec"]["methods"]:
        one["input_schema"] = msgspec.json.decode(msgspec.json.encode(one["input_schema"], order="sorted"))
    return value


def test_every_struct_of_a_manifest_is_known_to_the_table() -> None:
    """Those of 0.1 are counted; there the first fields are the old ones."""
    last: dict[type[msgspec.Struct], str] = {Manifest: "base", FunctionSpec: "placing", MethodSpec: "batching"}
    for cls, name in last.items():
        assert msgspec.structs.fields(cls)[FIELDS_OF_0_1[cls] - 1].name == name


def test_secrets_are_a_feature_and_as_files_another() -> None:
    """Agents of before refuse the field, or have no folder for files; a manifest has names, and no value."""
    named = msgspec.structs.replace(FULL, spec=msgspec.structs.replace(FULL.spec, secrets={"TOKEN": "hf-token"}))
    filed = function_spec(secrets={"TOKEN": "hf-token", "/run/secrets/key": "key"})

    assert needs_of(named.spec) == (SECRETS,)
    assert needs_of(filed) == (SECRET_FILES, SECRETS)
    assert {SECRETS, SECRET_FILES} <= FEATURES
    assert encode_manifest(named).count(b'"secrets":{"TOKEN":"hf-token"}') == 1
