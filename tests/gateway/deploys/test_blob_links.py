"""Which node is given a link to which blob."""

from __future__ import annotations

import asyncio
import hashlib

import msgspec
import pytest

from pilotlight_core.bus import Bus
from pilotlight_core.host.binding_book import MemoryBindings
from pilotlight_core.host.blobs import MemoryBlobs
from pilotlight_core.host.signing import Signer
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.blob_messages import BlobLink, BlobWanted
from pilotlight_core.model.spec import FileEntry
from pilotlight_gateway.deploys import blob_links
from pilotlight_gateway.deploys.blob_links import BlobLinkAnswers, BlobLinks
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.builders.nodes import binding
from tests.builders.specs import function_spec, manifest, version_record

CODE = b"def f(): pass\n"
FILE = hashlib.sha256(CODE).hexdigest()
OTHER = hashlib.sha256(b"another version's").hexdigest()


class LinkingBlobs(MemoryBlobs):
    """A store in memory that gives links, as S3 does."""

    async def link(self, tenant: str, sha256: str, seconds: float) -> str:
        await self.read(tenant, sha256)
        return f"https://blobs/{tenant}/{sha256}?for={seconds:g}"


class Store:
    """A version `ver_1` of `acme`, bound as `c1` on `n1`; another blob of the same tenant beside it."""

    def __init__(self) -> None:
        self.blobs = LinkingBlobs()
        self.registry = MemoryRegistry()
        self.bindings = MemoryBindings()
        self.links = BlobLinks(self.blobs, self.registry, self.bindings)
        self.manifest = ""

    async def fill(self, signer: Signer) -> None:
        for content in (CODE, b"another version's"):
            await self.blobs.put("acme", hashlib.sha256(content).hexdigest(), content)
        signed = msgspec.msgpack.encode(signer.sign(manifest(function_spec("f"), FileEntry("app.py", FILE, len(CODE)))))
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
    store.bindings.end("c1")
    assert await store.asked(FILE) == BlobLink(reason="not_bound")
    assert await store.asked("../../other/secret") == BlobLink(reason="not_bound")


async def test_what_the_store_says_is_passed_on(store: Store) -> None:
    """A version that was deleted, a file that is not there, a store that is away, and one without links."""
    del store.blobs.kept["acme", FILE]
    assert await store.asked(FILE) == BlobLink(reason="missing")
    store.blobs.down = True
    assert await store.asked(store.manifest) == BlobLink(reason="down")
    store.registry.versions.clear()
    assert await store.asked(FILE) == BlobLink(reason="not_its")


async def test_a_folder_has_no_links(store: Store) -> None:
    """Agents that need some are told."""
    links = BlobLinks(MemoryBlobs(), store.registry, store.bindings)

    assert await links.link("n1", BlobWanted(container="c1", sha256=store.manifest)) == BlobLink(reason="no_links")


async def test_agents_are_answered_over_the_bus(store: Store, bus: Bus, other: Bus) -> None:
    """By the node in the subject; a question that fails answers nobody, and does not end the others."""
    region = f"r{token(8)}"
    answers = BlobLinkAnswers(bus, store.links, region=region)
    async with answers.running():
        await bus.flush()
        for node, reason in (("n1", ""), ("n2", "not_bound")):
            wanted = BlobWanted(container="c1", sha256=FILE)
            answer = await other.request(subjects.blobs(region, node), wanted, 10.0)
            assert (bool(answer.url), answer.reason) == (not reason, reason)


async def test_one_node_does_not_keep_a_gateway_busy(
    store: Store, bus: Bus, other: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond so many open questions it is told to come later; others are not."""
    monkeypatch.setattr(blob_links, "AT_ONCE", 2)
    free = asyncio.Event()

    class SlowLinks(BlobLinks):
        async def link(self, node: str, wanted: BlobWanted) -> BlobLink:
            if node == "n1":
                await free.wait()
            return BlobLink(url="https://there")

    region, wanted = f"r{token(8)}", BlobWanted(container="c1", sha256=FILE)
    slow = SlowLinks(store.blobs, store.registry, store.bindings)
    async with BlobLinkAnswers(bus, slow, region=region).running():
        await bus.flush()
        held = [asyncio.ensure_future(other.request(subjects.blobs(region, "n1"), wanted, 30.0)) for _ in range(3)]
        done, _ = await asyncio.wait(held, return_when=asyncio.FIRST_COMPLETED, timeout=30.0)
        assert [task.result() for task in done] == [BlobLink(reason="busy")]
        assert (await other.request(subjects.blobs(region, "n2"), wanted, 30.0)).url
        free.set()
        assert sorted(bool(answer.url) for answer in await asyncio.gather(*held)) == [False, True, True]
