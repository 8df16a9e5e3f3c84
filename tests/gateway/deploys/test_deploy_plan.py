"""The versions that a deploy makes."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.api.call_api import DeployFunction, DeployRequest, DeploySignature
from pilotlight_core.model.artifacts.evidence_info import EvidenceInfo
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import ArtifactEntry, ArtifactInfo, ArtifactKind, ArtifactPart, FunctionSpec, Manifest
from pilotlight_core.model.versions.manifest_codec import SANDBOX_LIMITS
from pilotlight_gateway.deploys.deploy_plan import Build, manifests_of, signatures_of, version_record
from tests.builders.specs import id_of
from tests.gateway.world import entry, function


def request(*specs: FunctionSpec, **more: object) -> DeployRequest:
    functions = tuple(DeployFunction(spec=spec) for spec in specs or (function(),))
    made = DeployRequest(functions=functions, files=(entry(b"b", "b.py"), entry(b"a", "a.py")))
    return msgspec.structs.replace(made, **more)


def test_the_same_content_is_the_same_version() -> None:
    """Neither the order of files nor another message makes a new version; another base does."""
    (one,) = manifests_of("acme", "shop", request())
    (same,) = manifests_of("acme", "shop", request(files=tuple(reversed(request().files)), message="again"))
    (other,) = manifests_of("acme", "shop", request(base="torch"))

    assert id_of(one) == id_of(same)
    assert id_of(one) != id_of(other)
    assert id_of(manifests_of("rival", "shop", request())[0]) != id_of(one)


def test_a_version_has_the_artifacts_that_its_function_names() -> None:
    """In any order; one that names none needs nothing of its agent. The registry knows what is shown of them."""
    parts = tuple(ArtifactPart(path, digest * 64, 1) for path, digest in (("b", "1"), ("b", "2"), ("a", "3")))
    tiny, words = (
        ArtifactEntry(kind=kind, name=kind.value, parts=parts)
        for kind in (ArtifactKind.WEIGHTS, ArtifactKind.TOKENIZER)
    )
    functions = tuple(
        DeployFunction(spec=function(name), artifacts=names)
        for name, names in (("both", ("weights", "tokenizer")), ("one", ("tokenizer",)), ("none", ()))
    )
    both, one, none = manifests_of("acme", "shop", request(functions=functions, artifacts=(tiny, words)))
    turned = request(functions=functions, artifacts=(words, tiny))
    files_turned = msgspec.structs.replace(tiny, parts=(parts[2], *parts[:2]))
    pieces_turned = msgspec.structs.replace(tiny, parts=(parts[1], parts[0], parts[2]))

    assert [artifact.name for artifact in both.artifacts] == ["tokenizer", "weights"]
    assert [manifest.needs for manifest in (both, one, none)] == [("artifacts",), ("artifacts",), ()]
    assert one.artifacts == both.artifacts[:1]
    assert none == manifests_of("acme", "shop", request(function("none")))[0]
    assert manifests_of("acme", "shop", turned)[0] == both
    for artifacts, is_same in (((words, files_turned), True), ((words, pieces_turned), False)):
        again = manifests_of("acme", "shop", request(functions=functions, artifacts=artifacts))[0]
        assert (id_of(again) == id_of(both)) is is_same
    record = version_record(built(one), None)
    assert record.artifacts == (ArtifactInfo(kind=ArtifactKind.TOKENIZER, name="tokenizer", files=2, size=3),)


def built(one: Manifest) -> Build:
    """A manifest as it was stored."""
    evidence = EvidenceInfo(statement="1", sbom="2", verdict="3")
    return Build(manifest=one, version_id="ver_1", signed_sha256="0", evidence=evidence, at=1.0)


def test_a_version_says_where_it_can_run() -> None:
    """Its base environment and the features that its limits need, in what is signed and in the registry's record."""
    plain, limited = manifests_of("acme", "shop", request(function("f"), function("g", pids=64), base="torch"))
    record = version_record(built(limited), None)

    assert (plain.base, plain.needs, limited.needs) == ("torch", (), (SANDBOX_LIMITS,))
    assert (record.base, record.needs) == ("torch", (SANDBOX_LIMITS,))


def test_a_manifest_says_what_is_signed_of_it_and_that_it_has_documents() -> None:
    """In what the platform signs, so that nobody takes them off; a version without either is as it always was."""
    asked = request(function("f"), function("g"))
    plain, _ = manifests_of("acme", "shop", asked)
    signed, other = manifests_of("acme", "shop", asked, signed={"f": {"code": b"", "tiny": b""}, "g": {}})
    held, _ = manifests_of("acme", "shop", asked, documented=True)

    assert (plain.needs, plain.signed) == ((), ())
    assert (signed.needs, signed.signed) == (("evidence",), ("code", "tiny"))
    assert (other.needs, other.signed) == ((), ())
    assert (held.needs, held.signed) == (("evidence",), ())
    assert len({id_of(one) for one in (plain, signed, held)}) == 3


def test_a_signature_goes_to_each_function_that_has_what_is_signed() -> None:
    """One that goes with the deploy counts before one that was pushed with weights."""
    tiny = ArtifactEntry(kind=ArtifactKind.WEIGHTS, name="tiny", parts=())
    uses = (DeployFunction(spec=function("f"), artifacts=("words",)), DeployFunction(spec=function("g")))
    given = tuple(DeploySignature(of=of, bundle=f"given {of}") for of in ("code", "tiny"))
    asked = request(functions=uses, signatures=given[:1])
    pins, pushed = {"g": (tiny,)}, {"g": {"tiny": b"pushed"}}

    assert signatures_of(asked, pins, pushed) == {
        "f": {"code": b"given code"}, "g": {"code": b"given code", "tiny": b"pushed"},
    }  # fmt: skip
    assert signatures_of(msgspec.structs.replace(asked, signatures=given), pins, pushed)["g"]["tiny"] == b"given tiny"
    with pytest.raises(BadInput, match="'tiny' is none of what is deployed: code, words"):
        signatures_of(msgspec.structs.replace(asked, signatures=given))
    with pytest.raises(BadInput, match="stands twice"):
        signatures_of(msgspec.structs.replace(asked, signatures=given[:1] * 2))
