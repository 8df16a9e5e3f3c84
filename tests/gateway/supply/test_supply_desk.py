"""A deploy is refused, or warned of, by the rule and the component; what it makes is judged by the standard tools."""

from __future__ import annotations

import base64
import hashlib
import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey

from pilotlight.packing.folder_signing import CODE, FolderSigner
from pilotlight_core.host.signing import Signer
from pilotlight_core.model.api.call_api import DeployFunction, DeployRequest, DeployResponse, DeploySignature
from pilotlight_core.model.api.curve_api import TrialRequest
from pilotlight_core.model.errors import BadInput, Conflict, NotFound, PolicyRefused
from pilotlight_core.model.spec import (
    ArtifactEntry,
    ArtifactKind,
    ArtifactPart,
    FileEntry,
    Manifest,
    SignedManifest,
    VersionRecord,
)
from pilotlight_core.model.supply.findings import PolicyVerdict
from pilotlight_core.model.supply.key_terms import KeyTerms
from pilotlight_core.model.supply.policies import Policy, PolicyMode, Severity
from pilotlight_core.model.supply.signed_folders import SignedPart
from pilotlight_core.model.versions.manifest_codec import version_id
from pilotlight_gateway.deploys.deploy_plan import signed_blob
from pilotlight_gateway.deploys.rules.weights_rules import WeightsPush
from pilotlight_gateway.supply.osv_file import OsvFile
from pilotlight_gateway.supply.policy_book import remove_policy, set_policy
from pilotlight_gateway.tenancy.auth import Principal
from tests.builders.specs import function_spec, manifest
from tests.builders.supply import AT, BASE, DAY_S, lock_of, signing_key, trusting
from tests.gateway.supply.test_osv_file import YAML, export
from tests.gateway.world import World, function

ACME = Principal(tenant="acme", key_id="key1", scopes=frozenset({"deploy"}))
CODE_FILES = {"app.py": b"def hello(): ..."}
MODEL = {"m.safetensors": b"\x10\0\0\0\0\0\0\0{}"}


@dataclass
class SupplyWorld:
    """A gateway over fakes, and a tenant that deploys `code` and a model of it."""

    world: World
    code: dict[str, bytes] = field(default_factory=lambda: dict(CODE_FILES))
    model: dict[str, bytes] = field(default_factory=lambda: dict(MODEL))
    signatures: dict[str, bytes] = field(default_factory=dict)
    lock: Any = None

    def __post_init__(self) -> None:
        self.world.services.inventories.bases["default"] = BASE

    async def policy(self, tenant: str = "acme", **rules: Any) -> None:
        """Enforced."""
        policy = Policy(mode=PolicyMode.ENFORCE, **rules)
        await set_policy(self.world.registry.policies, tenant, policy, by="key1", at=AT)

    def sign(self, signer: FolderSigner, *names: str) -> None:
        for name in names or (CODE, "tiny"):
            files = self.code if name == CODE else self.model
            self.signatures[name] = signer.sign(name, _parts(files), 2**20)

    async def trust(self, signer: FolderSigner, **terms: Any) -> None:
        self.world.services.supply.trust.records["acme"] = trusting(signer, terms=KeyTerms(**terms))  # type: ignore[attr-defined]  # the fake's

    async def deploy(self) -> DeployResponse:
        """Deploy, with all that is missing uploaded."""
        for content in (*self.code.values(), *self.model.values()):
            await self.world.blobs.put("acme", hashlib.sha256(content).hexdigest(), content)
        parts = tuple(ArtifactPart(*part) for part in _parts(self.model))
        request = DeployRequest(
            functions=(DeployFunction(spec=function(), artifacts=("tiny",)),),
            files=tuple(FileEntry(*part) for part in _parts(self.code)),
            artifacts=(ArtifactEntry(kind=ArtifactKind.WEIGHTS, name="tiny", parts=parts),),
            signatures=tuple(DeploySignature(of=of, bundle=text.decode()) for of, text in self.signatures.items()),
        )
        return await self.world.services.deployer.deploy(ACME, "shop", request, self.lock)

    async def version(self) -> VersionRecord:
        answer = await self.deploy()
        return self.world.registry.versions[answer.functions[0].version_id]

    async def read(self, sha256: str) -> bytes:
        return await self.world.blobs.read("acme", sha256)


def _parts(files: Mapping[str, bytes]) -> list[SignedPart]:
    return [SignedPart(path, hashlib.sha256(data).hexdigest(), len(data)) for path, data in sorted(files.items())]


@pytest.fixture
def shop(world: World) -> SupplyWorld:
    return SupplyWorld(world)


async def test_a_version_has_its_documents_and_the_standard_library_takes_the_signed_one(shop: SupplyWorld) -> None:
    """The provenance names the manifest, and each document by its digest."""
    version = await shop.version()
    assert version.evidence is not None
    statement = json.loads(await shop.read(version.evidence.statement))
    public = shop.world.signer.public
    key = SSlibKey(shop.world.signer.key_id, "ed25519", "ed25519", {"public": public.hex()})

    assert list(Envelope.from_dict(statement).verify([key], 1)) == [shop.world.signer.key_id]

    said = json.loads(base64.b64decode(statement["payload"]))
    named = {each["name"]: each["digest"]["sha256"] for each in said["predicate"]["runDetails"]["byproducts"]}
    assert named == {"sbom": version.evidence.sbom, "verdict": version.evidence.verdict}
    assert said["subject"][0]["digest"]["sha256"].startswith(version.id.removeprefix("ver_"))
    sbom = json.loads(await shop.read(version.evidence.sbom))
    assert sbom["metadata"]["component"]["version"] == version.id
    assert PolicyVerdict(at=0.0).findings == ()


async def test_deployed_again_a_version_keeps_its_bill_of_materials_to_the_byte(shop: SupplyWorld) -> None:
    """However much later; and what no node tells of the base later is not forgotten."""
    first = await shop.version()
    again = await shop.version()

    assert first.evidence is not None
    assert again.evidence is not None
    assert (again.id, again.evidence.sbom) == (first.id, first.evidence.sbom)
    assert again.evidence.digests <= {digest for _, digest in shop.world.blobs.kept}


@pytest.mark.parametrize("of", ["acme", ""])
async def test_a_policy_that_warns_tells_and_one_that_enforces_refuses(shop: SupplyWorld, of: str) -> None:
    """The operator's and the tenant's alike; with the rule and the component, for people and for programs."""
    book = shop.world.registry.policies
    await set_policy(book, of, Policy(deny_packages=("numpy",), deny_licences=("BSD-*",)), by="k", at=AT)
    whose = "tenant" if of else "operator"

    told = (await shop.deploy()).warnings

    assert f"policy ({whose}): pkg:pypi/numpy@2.1.0 is denied: numpy." in told
    await shop.policy(of, deny_packages=("numpy",), deny_licences=("BSD-*",))
    with pytest.raises(PolicyRefused) as refused:
        await shop.deploy()
    assert refused.value.meaning.status == 403
    assert f"pkg:pypi/numpy@2.1.0 is denied: numpy. (rule package, of the {whose})" in refused.value.detail
    assert [(each["rule"], each["component"]) for each in refused.value.more["findings"]] == [
        ("licence", "pkg:pypi/numpy@2.1.0"), ("licence", "pkg:pypi/strange-pack@1.0"),
        ("package", "pkg:pypi/numpy@2.1.0"),
    ]  # fmt: skip


async def test_what_is_refused_leaves_no_version(shop: SupplyWorld) -> None:
    """Nor an app."""
    await shop.policy(signed=True)
    with pytest.raises(PolicyRefused, match=r"code is not signed: deploy with --sign KEY\. \(rule signature"):
        await shop.deploy()

    assert not shop.world.registry.versions
    assert not shop.world.registry.apps


async def test_a_signed_deploy_passes_and_says_by_whom_it_is_signed(shop: SupplyWorld) -> None:
    """And its manifest is run by no agent that would not verify that."""
    signer = signing_key()
    await shop.policy(signed=True)
    await shop.trust(signer)
    shop.sign(signer)

    version = await shop.version()

    assert version.evidence is not None
    assert set(version.evidence.signatures) == {"code", "tiny"}
    assert "evidence" in version.needs
    assert await shop.read(version.evidence.signatures["tiny"]) == shop.signatures["tiny"]
    review = await shop.world.services.supply.desk.judged(version, AT)
    assert (review.verdict.findings, set(review.facts.signed_by)) == ((), {"code", "tiny"})


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({"not_after": AT - DAY_S}, "its key key1 .* has expired on"),
        ({"revoked_at": AT, "reason": "stolen"}, "its key key1 .* was revoked on .*: stolen"),
    ],
)
async def test_a_key_that_counts_no_more_signs_no_deploy(shop: SupplyWorld, terms: dict[str, Any], said: str) -> None:
    """Whatever policies there are."""
    signer = signing_key()
    await shop.trust(signer, **terms)
    shop.sign(signer)
    with pytest.raises(BadInput, match=f"signatures: The signature of code: {said}"):
        await shop.deploy()


async def test_a_foreign_key_a_tampered_byte_and_an_added_file_are_refused_by_name(shop: SupplyWorld) -> None:
    """Before anything is stored."""
    signer = signing_key()
    await shop.trust(signer)
    shop.sign(signing_key())
    with pytest.raises(BadInput, match="which is not on record"):
        await shop.deploy()
    shop.sign(signer)
    shop.code["app.py"] = b"def hello(): steal()"
    with pytest.raises(BadInput, match=r"The signature of code: app\.py is not what was signed"):
        await shop.deploy()
    shop.code = CODE_FILES | {".gitignore": b"x"}
    with pytest.raises(BadInput, match=r"The signature of code: \.gitignore is outside"):
        await shop.deploy()
    shop.code = CODE_FILES | {"new.py": b"x"}
    with pytest.raises(BadInput, match=r"The signature of code: new\.py is not signed"):
        await shop.deploy()
    shop.code = dict(CODE_FILES)
    shop.signatures["words"] = shop.signatures[CODE]
    with pytest.raises(BadInput, match="'words' is none of what is deployed: code, tiny"):
        await shop.deploy()
    assert not shop.world.registry.versions


async def test_a_pickle_is_found_by_its_name_before_an_upload_and_by_its_bytes_after(shop: SupplyWorld) -> None:
    """A renamed one too."""
    await shop.policy(no_pickles=True)
    await shop.deploy()
    shop.model = {"m.safetensors": pickle.dumps({"a": 1})}
    with pytest.raises(PolicyRefused, match=r"tiny/m\.safetensors is a pickle, which runs code"):
        await shop.deploy()
    shop.model = {"m.pt": b"anything"}
    with pytest.raises(PolicyRefused, match=r"tiny/m\.pt is a pickle by its name.*\(rule pickle"):
        await shop.deploy()


async def test_licences_of_locked_packages_are_asked_for_where_a_policy_needs_them(shop: SupplyWorld) -> None:
    """Since a node has to build them to know."""
    shop.lock = lock_of(duckdb="1.3.0")
    shop.world.services.inventories.licences["pkg:pypi/duckdb@1.3.0"] = "AGPL-3.0-only OR Elastic-2.0"
    await shop.deploy()
    assert {asked for _, _, asked in shop.world.services.inventories.asked} == {False}

    await shop.policy(deny_licences=("AGPL-*", "Elastic-2.0"))
    with pytest.raises(PolicyRefused, match=r"pkg:pypi/duckdb@1\.3\.0 has the licence AGPL-3.0-only OR Elastic-2.0"):
        await shop.deploy()


async def test_a_vulnerable_pin_is_refused_and_old_data_too_where_a_policy_says_so(
    shop: SupplyWorld, tmp_path: Path
) -> None:
    """By an OSV file that the operator supplies; without one nothing is known to be well."""
    shop.lock = lock_of(pyyaml="5.3")
    await shop.policy(vulnerabilities=Severity.HIGH)
    with pytest.raises(PolicyRefused, match=r"no file of known vulnerabilities \(--osv-file\)\. \(rule data-age"):
        await shop.deploy()

    shop.world.services.osv = OsvFile(export(tmp_path / "all.zip", YAML))
    del shop.world.services.__dict__["supply"]
    with pytest.raises(PolicyRefused, match=r"pyyaml@5\.3 has the vulnerability GHSA-8q59-q68h-6hv4 \(critical"):
        await shop.deploy()
    shop.lock = lock_of(pyyaml="6.0.2")
    told = (await shop.deploy()).warnings
    assert any("days old: its operator should renew the OSV file" in each for each in told)

    await shop.policy(vulnerabilities=Severity.HIGH, data_days=7)
    with pytest.raises(PolicyRefused, match=r"days old, more than the 7 of the policy: renew the OSV file"):
        await shop.deploy()


async def test_a_trial_of_a_signed_version_has_documents_of_its_own(shop: SupplyWorld) -> None:
    """With the tenant's signature, without which no agent would run it."""
    signer = signing_key()
    await shop.trust(signer)
    shop.sign(signer)
    version = await shop.version()

    trial = await shop.world.services.deployer.trial(version, TrialRequest(gpu="T4", slice="1"))

    assert version.evidence is not None
    assert trial.evidence is not None
    assert trial.id != version.id
    assert trial.evidence.signatures == version.evidence.signatures
    assert trial.evidence.sbom != version.evidence.sbom


async def push(shop: SupplyWorld, content: bytes, text: bytes = b"", name: str = "llama") -> str:
    """Weights; their digest."""
    await shop.world.blobs.put("acme", hashlib.sha256(content).hexdigest(), content)
    entry = ArtifactEntry(
        kind=ArtifactKind.WEIGHTS, name=name, parts=tuple(ArtifactPart(*one) for one in _parts({"m.bin": content}))
    )
    return (await shop.world.services.deployer.weights.push(ACME, WeightsPush(entry, signature=text))).digest


async def deploy_weights(shop: SupplyWorld, **of_functions: str) -> dict[str, VersionRecord]:
    """By function, what was deployed."""
    for content in shop.code.values():
        await shop.world.blobs.put("acme", hashlib.sha256(content).hexdigest(), content)
    request = DeployRequest(
        functions=tuple(DeployFunction(spec=function(name), weights=(ref,)) for name, ref in of_functions.items()),
        files=tuple(FileEntry(*part) for part in _parts(shop.code)),
        signatures=tuple(DeploySignature(of=of, bundle=text.decode()) for of, text in shop.signatures.items()),
    )
    done = await shop.world.services.deployer.deploy(ACME, "shop", request)
    return {one.name: shop.world.registry.versions[one.version_id] for one in done.functions}


async def test_a_signature_that_was_pushed_with_weights_goes_with_each_deploy_of_them(shop: SupplyWorld) -> None:
    """No flag is needed, and the manifest says so; a newer one counts from the next deploy on, for the same version."""
    signer, other = signing_key(), signing_key()
    shop.world.services.supply.trust.records["acme"] = trusting(signer, other)  # type: ignore[attr-defined]  # the fake's
    files = _parts({"m.bin": b"1"})
    text = signer.sign("llama", files, 2**20)
    await push(shop, b"1", text)

    version = (await deploy_weights(shop, rank="llama"))["rank"]

    assert version.evidence is not None
    assert await shop.read(version.evidence.signatures["llama"]) == text
    signed = msgspec.msgpack.decode(await shop.read(version.manifest_sha256), type=SignedManifest)
    made = msgspec.json.decode(signed.manifest, type=Manifest)
    assert (made.signed, "evidence" in made.needs) == (("llama",), True)

    newer = other.sign("llama", files, 2**20)
    await push(shop, b"1", newer)
    again = (await deploy_weights(shop, rank="llama"))["rank"]
    assert again.evidence is not None
    assert (again.id, await shop.read(again.evidence.signatures["llama"])) == (version.id, newer)


@pytest.mark.parametrize(
    ("terms", "said"),
    [({"not_after": AT}, "has expired on"), ({"revoked_at": AT, "reason": "stolen"}, "was revoked on .*: stolen")],
)
async def test_pushed_weights_whose_key_counts_no_more_are_not_deployed(
    shop: SupplyWorld, terms: dict[str, Any], said: str
) -> None:
    """Until they are signed by another one."""
    signer, other = signing_key(), signing_key()
    await shop.trust(signer)
    files = _parts({"m.bin": b"1"})
    await push(shop, b"1", signer.sign("llama", files, 2**20))
    await shop.trust(signer, **terms)
    with pytest.raises(BadInput, match=f"signatures: The signature of llama: its key key1 .*{said}"):
        await deploy_weights(shop, rank="llama")

    await shop.trust(other)
    await push(shop, b"1", other.sign("llama", files, 2**20))
    assert "rank" in await deploy_weights(shop, rank="llama")


async def test_a_signature_over_one_digest_says_nothing_of_another_under_the_same_name(shop: SupplyWorld) -> None:
    """Each function's weights are held to a signature of their own, whatever another function gets."""
    signer = signing_key()
    await shop.trust(signer)
    await shop.policy(signed=True)
    shop.signatures[CODE] = signer.sign(CODE, _parts(shop.code), 2**20)
    old = await push(shop, b"1")
    new = await push(shop, b"2", signer.sign("llama", _parts({"m.bin": b"2"}), 2**20))

    with pytest.raises(PolicyRefused, match="llama is not signed"):
        await deploy_weights(shop, a=f"llama@{old}", b=f"llama@{new}")
    shop.signatures["llama"] = signer.sign("llama", _parts({"m.bin": b"2"}), 2**20)
    with pytest.raises(BadInput, match=r"The signature of llama: m\.bin is not what was signed"):
        await deploy_weights(shop, a=f"llama@{old}", b=f"llama@{new}")
    assert len(await deploy_weights(shop, b=f"llama@{new}")) == 1


async def test_the_signature_of_code_is_not_one_of_weights_that_are_called_so(shop: SupplyWorld) -> None:
    """They cannot be signed, and where a policy asks for it not be deployed."""
    signer = signing_key()
    await shop.trust(signer)
    text = shop.signatures[CODE] = signer.sign(CODE, _parts(shop.code), 2**20)
    with pytest.raises(BadInput, match="weights that are called code cannot be signed"):
        await push(shop, b"1", text, name=CODE)
    await push(shop, b"1", name=CODE)
    await deploy_weights(shop, rank=CODE)
    await shop.policy(signed=True)
    with pytest.raises(PolicyRefused, match=r"The artifact code cannot be signed.* give it another name"):
        await deploy_weights(shop, rank=CODE)


async def test_documents_of_what_a_policy_is_held_against_are_part_of_what_is_signed(shop: SupplyWorld) -> None:
    """Whether it warns or refuses: so that nobody takes them off the record of the version."""
    plain = await shop.version()
    await set_policy(shop.world.registry.policies, "acme", Policy(no_pickles=True), by="k", at=AT)
    held = await shop.version()
    assert ("evidence" in plain.needs, "evidence" in held.needs) == (False, True)
    assert plain.id != held.id
    await remove_policy(shop.world.registry.policies, "acme")
    assert (await shop.version()).id == plain.id


async def test_what_no_node_tells_of_a_base_does_not_pass_for_nothing_that_is_denied(shop: SupplyWorld) -> None:
    """By each rule that is about packages."""
    shop.world.services.inventories.bases.clear()
    every: list[dict[str, Any]] = [
        {"deny_packages": ("numpy",)},
        {"deny_licences": ("AGPL-*",)},
        {"bases": ("default",)},
    ]
    for rules in every:
        await shop.policy(**rules)
        with pytest.raises(PolicyRefused, match=r"base environment default are not known.*\(rule base, of the tenant"):
            await shop.deploy()
    await shop.policy(no_pickles=True)
    await shop.deploy()


async def test_what_nobody_has_signed_is_not_signed_by_way_of_a_copy(shop: SupplyWorld) -> None:
    """A trial, or a twin: neither of what was put in the place of a manifest, nor of what a record was made to name."""
    version, deployer, trial = await shop.version(), shop.world.services.deployer, TrialRequest(gpu="T4", slice="1")
    signed = msgspec.msgpack.decode(await shop.read(version.manifest_sha256), type=SignedManifest)
    made = msgspec.json.decode(signed.manifest, type=Manifest)
    forged = Signer(Ed25519PrivateKey.generate()).sign(msgspec.structs.replace(made, base="evil"))
    digest, data = signed_blob(forged)
    await shop.world.blobs.put("acme", digest, data)

    record = msgspec.structs.replace(version, manifest_sha256=digest)
    with pytest.raises(NotFound, match="is another version's"):
        await deployer.twin(record)
    with pytest.raises(Conflict, match=r"shop\.hello@v1 cannot be copied: The manifest is signed by key"):
        await deployer.trial(msgspec.structs.replace(record, id=version_id(forged.manifest)), trial)
    shop.world.blobs.kept["acme", version.manifest_sha256] = data
    with pytest.raises(NotFound, match="in the blob store is damaged"):
        await deployer.trial(version, trial)
    assert list(shop.world.registry.versions) == [version.id]


async def test_what_no_node_would_read_is_refused_at_the_deploy(
    shop: SupplyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its size; it would never start."""
    monkeypatch.setattr("pilotlight_gateway.supply.supply_desk.STATEMENT_BYTES", 100)
    with pytest.raises(BadInput, match=r"the bill of materials of hello has .* that nodes read: have fewer files"):
        await shop.deploy()
    assert not shop.world.registry.versions


async def test_many_functions_are_reviewed_together(shop: SupplyWorld) -> None:
    """What is found of all of them is said once."""
    desk = shop.world.services.supply.desk
    await shop.policy(deny_packages=("numpy",))
    manifests = [manifest(function_spec(f"f{number}")) for number in range(3)]
    with pytest.raises(PolicyRefused) as refused:
        await desk.review(manifests, {}, AT, with_content=False)
    assert len(refused.value.more["findings"]) == 1
