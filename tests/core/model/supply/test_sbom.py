"""Bills of materials are valid by CycloneDX's own schema, the same each time, and name all that a version has."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import cyclonedx.schema
import jsonschema_rs
import pytest
from cyclonedx.model.bom import Bom

from pilotlight_core.model.engines.engine_spec import EngineKind, EngineSpec
from pilotlight_core.model.spec import ArtifactEntry, ArtifactKind, ArtifactPart, FileEntry, Manifest
from pilotlight_core.model.supply.sbom import sbom_of
from tests.builders.specs import function_spec, manifest
from tests.builders.supply import AT, BASE, lock_of

DIGEST = "d" * 64
SCHEMAS = Path(cyclonedx.schema.__file__).parent / "_res"


@cache
def judge() -> jsonschema_rs.Draft7Validator:
    """The schema that the library of CycloneDX ships."""

    def read(name: str) -> Any:
        return json.loads((SCHEMAS / f"{name}.SNAPSHOT.schema.json").read_text())

    registry = jsonschema_rs.Registry(
        [(f"http://cyclonedx.org/schema/{name}.SNAPSHOT.schema.json", read(name)) for name in ("spdx", "jsf-0.82")]
    )
    return jsonschema_rs.Draft7Validator(read("bom-1.6"), registry=registry)


def version() -> Manifest:
    weights = (ArtifactPart("m.safetensors", "1" * 64, 5), ArtifactPart("m.safetensors", "2" * 64, 5))
    artifacts = (
        ArtifactEntry(kind=ArtifactKind.WEIGHTS, name="llama", parts=weights, digest="3" * 64),
        ArtifactEntry(kind=ArtifactKind.TOKENIZER, name="words", parts=(ArtifactPart("t.json", "4" * 64, 1),)),
    )
    made = manifest(function_spec("rank"), FileEntry("app.py", "5" * 64, 3), FileEntry("a b/ü.py", "6" * 64, 3))
    fields = {"artifacts": artifacts, "lock": lock_of(duckdb="1.3.0+cu1", left_pad="1!2")}
    return Manifest(**{name: getattr(made, name) for name in made.__struct_fields__} | fields)


@pytest.mark.parametrize("base", [BASE, None])
def test_the_schema_of_cyclonedx_takes_it(base: Any) -> None:
    """With what is known of a base environment, and without."""
    document = json.loads(sbom_of(version(), DIGEST, AT, base, {"pkg:pypi/duckdb@1.3.0%2Bcu1": "MIT"}))

    assert [error.message for error in judge().iter_errors(document)] == []
    spoilt = document | {"components": [document["components"][0] | {"hashes": [{"alg": "SHA-256", "content": "no"}]}]}
    assert not judge().is_valid(spoilt)  # the judge is awake


def test_the_library_of_cyclonedx_reads_it() -> None:
    """What its references and package URLs name is there, which the schema does not ask."""
    document = json.loads(sbom_of(version(), DIGEST, AT, BASE))
    bom = Bom.from_json(document)  # type: ignore[attr-defined]  # a decorator adds it

    assert bom.validate()
    assert {each.bom_ref.value for each in bom.components} == {each["bom-ref"] for each in document["components"]}
    names = {each.purl.name: each.purl.version for each in bom.components if each.purl is not None}
    assert (names["duckdb"], names["left-pad"], names["numpy"]) == ("1.3.0+cu1", "1!2", "2.1.0")


def test_it_names_what_a_version_is_made_of() -> None:
    """Each with its digest, and what is not known of the base is said."""
    document = json.loads(sbom_of(version(), DIGEST, AT, BASE, {"pkg:pypi/duckdb@1.3.0%2Bcu1": "MIT"}))
    by_ref = {each["bom-ref"]: each for each in document["components"]}

    assert sorted(by_ref) == [
        "artifact:llama", "artifact:words", "base:default", "base:pkg:pypi/numpy@2.1.0",
        "base:pkg:pypi/strange-pack@1.0", "base:pkg:pypi/unknown@0.1", "code:a b/ü.py", "code:app.py",
        "lock:pkg:pypi/duckdb@1.3.0%2Bcu1", "lock:pkg:pypi/left-pad@1%212",
    ]  # fmt: skip
    assert by_ref["lock:pkg:pypi/duckdb@1.3.0%2Bcu1"]["licenses"] == [{"expression": "MIT"}]
    assert by_ref["base:pkg:pypi/strange-pack@1.0"]["licenses"] == [{"license": {"name": "see (the file"}}]
    assert "licenses" not in by_ref["base:pkg:pypi/unknown@0.1"]
    model = by_ref["artifact:llama"]
    assert (model["type"], model["hashes"][0]["content"]) == ("machine-learning-model", "3" * 64)
    assert [part["name"] for part in model["components"]] == ["m.safetensors#1", "m.safetensors#2"]
    refs = {"version", *by_ref, *(part["bom-ref"] for each in by_ref.values() for part in each.get("components", ()))}
    for dependency in document["dependencies"]:
        assert {dependency["ref"], *dependency["dependsOn"]} <= refs
    assert model["modelCard"]["modelParameters"]["datasets"] == [{"ref": "artifact:words"}]
    unknown = json.loads(sbom_of(version(), DIGEST, AT))["metadata"]["properties"]
    assert unknown[-1]["name"] == "pilotlight:incomplete"


def test_of_one_version_it_is_the_same_to_the_byte() -> None:
    """However its packages were listed; of another version it is another."""
    turned = BASE.__replace__(packages=BASE.packages[::-1]) if hasattr(BASE, "__replace__") else BASE

    assert sbom_of(version(), DIGEST, AT, BASE) == sbom_of(version(), DIGEST, AT + 0.4, turned)
    assert sbom_of(version(), "e" * 64, AT, BASE) != sbom_of(version(), DIGEST, AT, BASE)


def test_an_engine_says_what_its_model_is_for() -> None:
    """It is known of no other function."""
    made = version()
    spec = function_spec("rank", engine=EngineSpec(kind=EngineKind.SIM))
    fields = {name: getattr(made, name) for name in made.__struct_fields__} | {"spec": spec}
    document = json.loads(sbom_of(Manifest(**fields), DIGEST, AT))

    (model,) = [each for each in document["components"] if each["type"] == "machine-learning-model"]
    assert model["modelCard"]["modelParameters"]["task"] == "text-generation"
    assert judge().is_valid(document)


def test_very_many_files_are_one_component(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each function of an app has a document of its own."""
    monkeypatch.setattr("pilotlight_core.model.supply.sbom.MOST_LISTED", 1)
    document = json.loads(sbom_of(version(), DIGEST, AT, BASE))

    (code,) = [each for each in document["components"] if each["bom-ref"].startswith("code:")]
    assert (code["name"], code["properties"][0]["value"]) == ("*", "2")
    assert judge().is_valid(document)
