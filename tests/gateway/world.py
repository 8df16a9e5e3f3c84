"""A whole HTTP side over fakes: what tests of routes stand on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from starlette.types import ASGIApp

from pilotlight_core.host.blobs import MemoryBlobs
from pilotlight_core.host.registry import KeyRecord, TenantRecord
from pilotlight_core.host.signing import Signer
from pilotlight_core.model.spec import AppRecord, FileEntry, FunctionSpec, MethodSpec, Mode, VersionRecord
from pilotlight_gateway.batches.batch_port import MemoryBatches
from pilotlight_gateway.batches.batch_service import BatchService
from pilotlight_gateway.calls.call_fake import FakeCalls
from pilotlight_gateway.deploys.function_logs import MemoryLogs
from pilotlight_gateway.http.app import create_app
from pilotlight_gateway.http.protocol.http_services import HttpServices
from pilotlight_gateway.jobs.job_service import JobService
from pilotlight_gateway.jobs.memory_jobs import MemoryJobs
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.prices import load_prices
from pilotlight_gateway.tenancy.key_authenticator import KeyAuthenticator
from pilotlight_gateway.tenancy.keys import ApiKey, new_key
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry, RegistryPort
from pilotlight_gateway.webhooks.webhook_port import MemoryWebhooks
from tests.builders.specs import function_spec, manifest, method, version_record

WALL = 1_790_000_000.0
HELLO = method(
    attribute="hello",
    input_schema={
        "type": "object",
        "properties": {"name": {"type": "string"}, "times": {"type": "array", "items": {"type": "integer"}}},
        "required": ["name"],
        "additionalProperties": False,
    },
)


def function(name: str = "hello", *methods: MethodSpec, **options: Any) -> FunctionSpec:
    """A spec."""
    return function_spec(name, *(methods or (HELLO,)), **{"module": "main"} | options)


def generator(**options: Any) -> MethodSpec:
    """A method that yields."""
    return method(attribute="tokens", mode=Mode.GENERATOR, **options)


@cache
def empty_ledger() -> bytes:
    """A ledger's file: making one waits for the disk, copying it does not."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        Ledger(f"sqlite:///{path}", load_prices()).close()
        return path.read_bytes()


class Clock:
    """Seconds that a test moves by hand; it also counts how often it was read."""

    def __init__(self, at: float) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


class World:
    """The application, everything below it, and a client with a key."""

    def __init__(self, folder: Path, registry: RegistryPort | None = None) -> None:
        self.calls = FakeCalls()
        self.registry = MemoryRegistry()
        self.blobs = MemoryBlobs()
        self.logs = MemoryLogs()
        self.webhooks = MemoryWebhooks()
        self.batches = MemoryBatches()
        self.jobs = MemoryJobs()
        self.clock = Clock(100.0)
        self.wall = Clock(WALL)
        (folder / "ledger.sqlite").write_bytes(empty_ledger())
        self.ledger = Ledger(f"sqlite:///{folder / 'ledger.sqlite'}", load_prices())
        self.signer = Signer(Ed25519PrivateKey.generate())
        self.services = HttpServices(
            calls=self.calls,
            registry=registry or self.registry,
            blobs=self.blobs,
            signer=self.signer,
            authenticator=KeyAuthenticator(registry or self.registry, clock=self.clock, wall=self.wall),
            ledger=self.ledger,
            logs=self.logs,
            webhooks=self.webhooks,
            jobs=(desk := JobService(self.jobs, blobs=self.blobs, wall=self.wall, clock=self.clock)),
            batches=BatchService(self.batches, desk, blobs=self.blobs, wall=self.wall),
        )
        self.app: ASGIApp = create_app(self.services)
        self.key = self.add_key("acme", "admin")
        self.operator = self.add_key("platform", "admin", "operator")

    def add_key(self, tenant: str, *scopes: str, **more: Any) -> ApiKey:
        """A key of a tenant, which is made if need be."""
        key = new_key()
        self.registry.tenant_records.setdefault(tenant, TenantRecord(name=tenant, created_at=WALL))
        self.registry.key_records[key.id] = KeyRecord(
            id=key.id, tenant=tenant, sha256=key.sha256, scopes=scopes, created_at=WALL, **more
        )
        return key

    def deploy(self, *specs: FunctionSpec, tenant: str = "acme", app: str = "shop") -> list[VersionRecord]:
        """Versions as a deploy would leave them in the registry."""
        made = []
        for spec in specs:
            version = manifest(spec, entry(b"x"), tenant=tenant, app=app).version_id
            record = version_record(spec, id=version, tenant=tenant, app=app, manifest_sha256="", created_at=WALL)
            self.registry.versions[record.id] = record
            made.append(record)
        ids = {record.function: record.id for record in made}
        self.registry.apps[tenant, app] = AppRecord(
            tenant=tenant, app=app, revision=1, functions=ids, versions={name: (id_,) for name, id_ in ids.items()}
        )
        return made

    def client(self, key: ApiKey | str | None = None, **options: Any) -> httpx.AsyncClient:
        """A client that sends `key`; by default an admin's of the tenant `acme`, with "" none."""
        key = self.key if key is None else key
        headers = {"authorization": f"Bearer {key}"} if key else {}
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url="http://gateway", headers=headers, **options)


def entry(content: bytes, path: str = "main.py") -> FileEntry:
    """The entry of a file."""
    return FileEntry(path=path, sha256=hashlib.sha256(content).hexdigest(), size=len(content))


def events_of(text: str) -> list[tuple[str, Any]]:
    """The (name, data) of server-sent events; comments are (":", text)."""
    found: list[tuple[str, Any]] = []
    for block in text.split("\n\n"):
        if block.startswith(":"):
            found.append((":", block))
        elif block:
            name, data = block.split("\n")
            found.append((name.removeprefix("event: "), msgspec.json.decode(data.removeprefix("data: "))))
    return found


def packed(*values: Any) -> Iterable[bytes]:
    """The msgpack of each value."""
    return [msgspec.msgpack.encode(value) for value in values]
