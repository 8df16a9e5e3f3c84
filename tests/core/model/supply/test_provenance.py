"""What a version was built of is an in-toto statement, and is of that version alone."""

from __future__ import annotations

import json

import pytest
from google.protobuf import json_format
from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement

from pilotlight_core.model.spec import FileEntry
from pilotlight_core.model.supply.provenance import SBOM, VERDICT, ProvenanceFault, documents_of, provenance_of
from tests.builders.specs import function_spec, manifest
from tests.builders.supply import AT, lock_of

DIGEST, DOCUMENTS = "d" * 64, {SBOM: "1" * 64, VERDICT: "2" * 64, "signature:code": "3" * 64}
MADE = manifest(function_spec("rank"), FileEntry("app.py", "5" * 64, 3))


def test_it_says_what_the_predicate_of_slsa_asks_for() -> None:
    """A builder, a kind of build, what came from outside, and what that came to."""
    said = json.loads(provenance_of(MADE, DIGEST, DOCUMENTS, AT, "b" * 64))

    assert (said["_type"], said["predicateType"]) == (
        "https://in-toto.io/Statement/v1", "https://slsa.dev/provenance/v1",
    )  # fmt: skip
    assert said["subject"] == [{"name": f"{MADE.tenant}/{MADE.app}.rank", "digest": {"sha256": DIGEST}}]
    build, run = said["predicate"]["buildDefinition"], said["predicate"]["runDetails"]
    assert build["buildType"].startswith("https://")
    assert run["builder"]["id"].startswith("https://")
    assert run["metadata"]["startedOn"] == "2026-09-21T14:13:20Z"
    assert [each.get("name") or each["uri"] for each in build["resolvedDependencies"]] == ["base:default", "code"]


def test_the_types_of_in_toto_take_it() -> None:
    """The statement, and SLSA's predicate: strictly, so that a field which they do not have is refused."""
    locked = type(MADE)(
        **{name: getattr(MADE, name) for name in MADE.__struct_fields__} | {"lock": lock_of(duckdb="1")}
    )
    content = provenance_of(locked, DIGEST, DOCUMENTS, AT, "b" * 64)
    statement = json_format.Parse(content, statement_pb2.Statement())
    Statement.copy_from_pb(statement).validate()
    predicate = json_format.Parse(json_format.MessageToJson(statement.predicate), provenance_pb2.Provenance())

    assert [each.name for each in predicate.run_details.byproducts] == sorted(DOCUMENTS)
    assert {each.uri or each.name for each in predicate.build_definition.resolved_dependencies} == {
        "base:default", "code", "pkg:pypi/duckdb@1",
    }  # fmt: skip
    wrong = json.loads(content.replace(b'"builder"', b'"builders"'))["predicate"]
    with pytest.raises(json_format.ParseError, match="builders"):  # the judge is awake
        json_format.ParseDict(wrong, provenance_pb2.Provenance())


def test_a_lock_is_among_what_it_was_resolved_to() -> None:
    """By package URL."""
    locked = type(MADE)(
        **{name: getattr(MADE, name) for name in MADE.__struct_fields__} | {"lock": lock_of(duckdb="1")}
    )
    build = json.loads(provenance_of(locked, DIGEST, {}, AT))["predicate"]["buildDefinition"]

    assert build["externalParameters"]["requirements"] == ["duckdb==1"]
    assert {"uri": "pkg:pypi/duckdb@1", "digest": {"sha256": "c" * 64}} in build["resolvedDependencies"]


def test_its_documents_are_those_of_its_own_version() -> None:
    """Who asks for another version's hears so."""
    content = provenance_of(MADE, DIGEST, DOCUMENTS, AT)

    assert documents_of(content, DIGEST) == DOCUMENTS
    with pytest.raises(ProvenanceFault, match="of another version"):
        documents_of(content, "e" * 64)
    for wrong in (b"{}", content.replace(b"slsa.dev/provenance/v1", b"slsa.dev/provenance/v9")):
        with pytest.raises(ProvenanceFault):
            documents_of(wrong, DIGEST)
