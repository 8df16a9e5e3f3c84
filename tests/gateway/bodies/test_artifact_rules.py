"""What artifacts a deploy may have."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.api.call_api import DeployFunction, DeployRequest
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import ArtifactEntry, ArtifactKind, ArtifactPart
from pilotlight_core.model.versions.artifacts import MAX_ARTIFACT_BYTES, MAX_ARTIFACTS, MAX_PARTS, PART_BYTES, parts_of
from pilotlight_gateway.bodies.artifact_rules import check_artifacts, check_part_sizes, repeated_sizes
from pilotlight_gateway.bodies.deploy_requests import read_deploy
from tests.gateway.world import entry, function

A, B = "a" * 64, "b" * 64


def artifact(*parts: ArtifactPart, name: str = "tiny") -> ArtifactEntry:
    return ArtifactEntry(kind=ArtifactKind.WEIGHTS, name=name, parts=parts or (ArtifactPart("model", A, 1),))


def request(*artifacts: ArtifactEntry, uses: tuple[str, ...] | None = None) -> DeployRequest:
    names = tuple(one.name for one in artifacts) if uses is None else uses
    one = DeployFunction(spec=function(), artifacts=names)
    return DeployRequest(functions=(one,), files=(entry(b"code"),), artifacts=artifacts)


def test_ordinary_artifacts_pass() -> None:
    """Of several parts and files; the same content may be in several places, and in the bundle too."""
    same = ArtifactPart("x/code", entry(b"code").sha256, 4)
    check_artifacts(request())
    large = ArtifactPart("m", A, PART_BYTES)
    check_artifacts(request(artifact(large, large, same), artifact(ArtifactPart("m", B, 0), name="other")))


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (request(artifact(name="../x")), "artifacts.0.name"),
        (request(artifact(), artifact(), uses=("tiny",)), "artifacts"),
        (request(msgspec.structs.replace(artifact(), parts=())), "artifacts.0.parts"),
        (request(msgspec.structs.replace(artifact(), digest=A)), "artifacts.0.digest"),
        (request(artifact(ArtifactPart("../x", A, 1))), "artifacts.0.parts.0.path"),
        (request(artifact(ArtifactPart("a\nb", A, 1))), "artifacts.0.parts.0.path"),
        (request(artifact(ArtifactPart("m.pkl", A, 1))), "artifacts.0.parts.0.path"),
        (request(artifact(ArtifactPart("m", "A" * 64, 1))), "artifacts.0.parts.0.sha256"),
        (request(artifact(ArtifactPart("m", A, -1))), "artifacts.0.parts.0.size"),
        (request(artifact(ArtifactPart("m", A, PART_BYTES + 1))), "artifacts.0.parts.0.size"),
        (request(artifact(*(ArtifactPart(path, A, 1) for path in "mnm"))), "artifacts.0.parts"),
        (request(artifact(*(ArtifactPart(path, A, 1) for path in ("m", "M")))), "artifacts.0.parts"),
        (request(artifact(*(ArtifactPart(path, A, 1) for path in ("m", "m/n")))), "artifacts.0.parts"),
        (request(artifact(ArtifactPart("m", A, 1), ArtifactPart("n", A, 2))), "artifacts"),
        (request(artifact(ArtifactPart("m", entry(b"code").sha256, 5))), "artifacts"),
        (request(artifact(), uses=()), "artifacts"),
        (request(artifact(), uses=("tiny", "tiny")), "functions.0.artifacts"),
        (request(artifact(), uses=("tiny", "large")), "functions.0.artifacts"),
        (request(*(artifact(name=f"a{number}") for number in range(MAX_ARTIFACTS + 1))), "artifacts"),
        (request(artifact(*(ArtifactPart("m", A, 1) for _ in range(MAX_PARTS + 1)))), "artifacts"),
    ],
)
def test_what_agents_could_not_lay_out_is_refused(wrong: DeployRequest, field: str) -> None:
    """Each rule names its field, and so does what no function uses."""
    with pytest.raises(BadInput) as caught:
        check_artifacts(wrong)

    assert caught.value.more["field"] == field


def test_a_file_is_bounded_however_small_its_content() -> None:
    """One part that is named again and again is as many bytes on a node."""
    most = [ArtifactPart("m", A, PART_BYTES)] * (MAX_ARTIFACT_BYTES // PART_BYTES)
    check_artifacts(request(artifact(*most)))
    with pytest.raises(BadInput, match=f"at most {MAX_ARTIFACT_BYTES} bytes in all") as caught:
        check_artifacts(request(artifact(*most), artifact(name="other")))
    assert caught.value.more["field"] == "artifacts"


def test_what_is_named_again_is_told() -> None:
    """In a file, in others, and in other artifacts."""
    a, b = ArtifactPart("m", A, 1), ArtifactPart("m", B, 2)
    assert repeated_sizes(parts_of(request(artifact(a, b)).artifacts)) == []
    assert repeated_sizes(parts_of(request(artifact(a, a, b), artifact(b, name="other")).artifacts)) == [1, 2]


def test_a_part_is_as_large_as_it_is_said_to_be() -> None:
    """The limit of a tenant's files counts what is stored."""
    made = request(artifact(ArtifactPart("m", A, 1), ArtifactPart("m", B, 2)))
    check_part_sizes(made, {A: 1})
    with pytest.raises(BadInput, match="'m' has 3 bytes there, not 2") as caught:
        check_part_sizes(made, {A: 1, B: 3})
    assert caught.value.more["field"] == "artifacts.0.parts.1.size"


def test_a_kind_that_nobody_knows_is_refused_by_name() -> None:
    """As any wrong value in the body of a deploy; an SBOM is one of those that are known."""
    body = msgspec.json.encode(request(artifact()))
    assert (
        read_deploy(body.replace(b'"kind":"weights"', b'"kind":"sbom"'), "shop").artifacts[0].kind is ArtifactKind.SBOM
    )
    with pytest.raises(BadInput, match="kind"):
        read_deploy(body.replace(b'"kind":"weights"', b'"kind":"picture"'), "shop")
    with pytest.raises(BadInput, match="no function uses 'tiny'"):
        read_deploy(body.replace(b'"artifacts":["tiny"]', b'"artifacts":[]'), "shop")
