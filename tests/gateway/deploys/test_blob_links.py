"""Which node is given a link to which blob."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from pilotlight_core.bus import Bus, bus_users, connect
from pilotlight_core.host.binding_book import MemoryBindings
from pilotlight_core.host.blobs import MemoryBlobKeys, MemoryBlobs, SealedBlobs
from pilotlight_core.host.blobs.blob_sealing import opened
from pilotlight_core.host.sealed_boxes import BoxReader, CannotOpen
from pilotlight_core.host.signing import Signer
from pilotlight_core.model import subjects
from pilotlight_core.model.artifacts.evidence_info import EvidenceInfo
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.agent_questions import BlobLink, BlobWanted, blob_key_context
from pilotlight_core.model.spec import ArtifactEntry, ArtifactKind, ArtifactPart, FileEntry
from pilotlight_gateway.deploys.blob_links import BlobLinks, blob_link_answers
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.builders.nodes import binding
from tests.builders.specs import function_spec, manifest, version_record

CODE = b"def f(): pass\n"
FILE = hashlib.sha256(CODE).hexdigest()
WEIGHTS = hashlib.sha256(b"weights").hexdigest()
OTHER = hashlib.sha256(b"another version's").hexdigest()


class LinkingBlobs(MemoryBlobs):
    """A store in memory that gives links, as S3 does."""

    async def link(self, tenant: str, sha256: str, seconds: float) -> str:
        await self.read(tenant, sha256)
        return f"https://blobs/{tenant}/{sha256}?for={seconds:g}"


class Store:
    """A version `ver_1` of `acme`, bound as `c1` on `n1`; another blob of the same tenant beside it."""

    def __init__(self) -> None:
        self.backend, self.keys = LinkingBlobs(), MemoryBlobKeys()
        self.blobs = SealedBlobs(self.backend, self.keys, seals=False)
        self.registry = MemoryRegistry()
        self.bindings = MemoryBindings()
        self.links = BlobLinks(self.blobs, self.registry, self.bindings)
        self.manifest = ""

    async def fill(self, signer: Signer) -> None:
        for content in (CODE, b"another version's"):
            await self.blobs.put("acme", hashlib.sha256(content).hexdigest(), content)
        await self.blobs.put("acme", WEIGHTS, b"weights")
        part = ArtifactPart("model.bin", WEIGHTS, len(b"weights"))
        tiny = ArtifactEntry(kind=ArtifactKind.WEIGHTS, name="tiny", parts=(part,))
        made = manifest(function_spec("f"), FileEntry("app.py", FILE, len(CODE)), artifacts=(tiny,))
        signed = msgspec.msgpack.encode(signer.sign(made))
        self.manifest = hashlib.sha256(signed).hexdigest()
        await self.blobs.put("acme", self.manifest, signed)
        record = version_record(id="ver_1", tenant="acme", manifest_sha256=self.manifest)
        self.registry.versions[record.id] = record
        self.bindings.bind(binding("c1", "ver_1", node="n1", tenant="acme"))

    async def asked(self, sha256: str, *, node: str = "n1", container: str = "c1") -> BlobLink:
        return await self.links.link(node, BlobWanted(container=container, sha256=sha256))


@pytest.fixture
async def store(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> Store:
    store = Store()
    await store.fill(Signer.load_or_create(tmp_path_factory.mktemp("keys")))
    return store


async def test_a_node_reads_what_it_was_told_to_run(store: Store) -> None:
    """The manifest of a container's version, and its files."""
    assert (await store.asked(store.manifest)).url == f"https://blobs/acme/{store.manifest}?for=300"
    assert (await store.asked(FILE)).url == f"https://blobs/acme/{FILE}?for=300"


async def test_it_reads_nothing_else(store: Store) -> None:
    """No other file of the tenant, nothing for a container that is elsewhere, or not any more."""
    assert await store.asked(OTHER) == BlobLink(reason="not_its")
    assert await store.asked(FILE, node="n2") == BlobLink(reason="not_bound")
    assert await store.asked(FILE, container="c2") == BlobLink(reason="not_bound")
    assert await store.asked("../../other/secret") == BlobLink(reason="not_its")
    store.bindings.end("c1")
    assert await store.asked(FILE) == BlobLink(reason="not_bound")


async def test_questions_that_come_together_read_a_manifest_once(store: Store) -> None:
    """A container asks for all of its files at a time."""
    reads = 0

    async def read(tenant: str, sha256: str) -> bytes:
        nonlocal reads
        reads += 1
        await asyncio.sleep(0)
        return store.backend.kept[tenant, sha256]

    store.backend.read = read  # type: ignore[method-assign]
    answers = await asyncio.gather(*(store.asked(FILE) for _ in range(8)))

    assert all(answer.url for answer in answers)
    assert reads == 1 + len(answers)  # each link looks whether its file is there


async def test_what_the_store_says_is_passed_on(store: Store) -> None:
    """A version that was deleted, a file that is not there, a store that is away, and one without links."""
    del store.backend.kept["acme", FILE]
    assert await store.asked(FILE) == BlobLink(reason="missing")
    store.backend.down = True
    assert await store.asked(store.manifest) == BlobLink(reason="down")
    store.registry.versions.clear()
    assert await store.asked(FILE) == BlobLink(reason="not_its")


async def test_a_folder_has_no_links(store: Store) -> None:
    """Agents that need some are told."""
    links = BlobLinks(SealedBlobs(MemoryBlobs(), store.keys, seals=False), store.registry, store.bindings)

    assert await links.link("n1", BlobWanted(container="c1", sha256=store.manifest)) == BlobLink(reason="no_links")


@asynccontextmanager
async def agent_of(server_url: str, node: str) -> AsyncIterator[Bus]:
    """A connection as a node's agent has it."""
    async with connect(server_url, name=node, inbox=bus_users.agent(node).inbox, makes_streams=False) as bus:
        yield bus


async def test_agents_are_answered_over_the_bus(store: Store, bus: Bus, server_url: str) -> None:
    """By the node in the subject."""
    region, wanted = f"r{token(8)}", BlobWanted(container="c1", sha256=FILE)
    answers = blob_link_answers(bus, store.links, region=region)
    async with answers.running(), agent_of(server_url, "n1") as first, agent_of(server_url, "n2") as second:
        await bus.flush()
        for agent, node, reason in ((first, "n1", ""), (second, "n2", "not_bound")):
            answer = await agent.request(subjects.blobs(region, node), wanted, 10.0)
            assert (bool(answer.url), answer.reason) == (not reason, reason)


async def test_the_key_of_a_sealed_blob_is_given_for_one_question(store: Store) -> None:
    """To the node that runs its version; it opens this blob and no other, and nobody else reads it on the bus."""
    reader = BoxReader()
    await store.keys.make("acme")
    sealing = SealedBlobs(store.backend, store.keys, seals=True)
    await sealing.put("acme", FILE, CODE)
    wanted = BlobWanted(container="c1", sha256=FILE, public_key=reader.public)
    answer = await store.links.link("n1", wanted)
    key = reader.open(answer.sealed_key, blob_key_context("c1", FILE))
    stored = store.backend.get("acme", answer.name)

    assert answer.url == f"https://blobs/acme/{answer.name}?for=300"
    assert b"".join([piece async for piece in opened(key, "acme", FILE, stored)]) == CODE
    assert key not in answer.sealed_key
    with pytest.raises(CannotOpen):
        reader.open(answer.sealed_key, blob_key_context("c2", FILE))
    assert await store.links.link("n2", wanted) == BlobLink(reason="not_bound")
    assert await store.asked(FILE) == BlobLink(reason="sealed")
    for none in (bytes(32), b"short"):
        asked = BlobWanted(container="c1", sha256=FILE, public_key=none)
        assert await store.links.link("n1", asked) == BlobLink(reason="sealed")


async def test_the_documents_of_a_version_are_its_own(store: Store) -> None:
    """A node verifies them before it loads the version that is bound there."""
    document = b"a document"
    digest = hashlib.sha256(document).hexdigest()
    await store.blobs.put("acme", digest, document)
    assert (await store.asked(digest)).reason == "not_its"

    evidence = EvidenceInfo(statement=digest, sbom="1" * 64, verdict="2" * 64)
    store.registry.versions["ver_1"] = msgspec.structs.replace(store.registry.versions["ver_1"], evidence=evidence)

    assert (await store.asked(digest)).url == f"https://blobs/acme/{digest}?for=300"
    assert (await store.asked(digest, node="n2")).reason == "not_bound"
