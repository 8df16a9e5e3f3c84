"""A tenant sees, guesses and reaches nothing of another: every route is walked with another tenant's key.

Each address is asked for twice, once with the names of what the tenant `acme` has and once with names that nobody has.
The answers must not differ: whether something is absent or not yours is the same.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec
import pytest

from pilotlight_core.bus import DecodedMessage
from pilotlight_core.bus.nkeys import Nkey, NkeyKind
from pilotlight_core.model.api.call_api import CallStatus
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.messages.logs import LogBatch, LogLine
from pilotlight_core.model.money.budgets import Budget, BudgetsRecord
from pilotlight_core.model.money.credits import CreditGrant, CreditsRecord
from pilotlight_core.model.records.files import FileRecord
from pilotlight_core.model.rollouts.rollout_record import Rollout, RolloutRecord
from pilotlight_core.model.served.model_records import ModelRecord
from pilotlight_core.model.tenancy import FunctionShareRecord, LimitsRecord, TenantRecord
from pilotlight_core.model.versions.pushed_weights import WeightsRecord, WeightsRevision
from pilotlight_gateway.http.inference.front_operations import INFER, TENSOR_MODELS
from pilotlight_gateway.http.protocol.api_operations import Operation
from pilotlight_gateway.http.routes import OPERATIONS
from pilotlight_gateway.secrets.secret_service import set_secret
from pilotlight_gateway.webhooks.webhook_events import ping_event
from tests.builders.jobs import dead_job
from tests.builders.kept import kept_call
from tests.gateway.batches.makers import batch
from tests.gateway.ledger.metering import SECOND, busy, delivered
from tests.gateway.webhooks.makers import webhook_of
from tests.gateway.world import WALL, World, entry, function

CALL, NO_CALL = "call_local_1_00000000000000000001", "call_local_1_99999999999999999999"
BLOB, NO_BLOB = (hashlib.sha256(content).hexdigest() for content in (b"acme's--blob", b"nobodys-blob"))
SECRET = "hush-hush"
"""In everything that acme has and that is text."""
DEPLOY = {
    "functions": [{"spec": msgspec.to_builtins(function("hello", module="main"))}],
    "files": [msgspec.to_builtins(entry(b"acme's--blob"))],
}
BODIES: dict[str, Any] = {
    "planPlacement": {"spec": msgspec.to_builtins(function("hello", module="main"))},
    "callFunction": {"input": {"name": "x"}},
    "runInference": {"model": "acme:shop.hello", "input": "x"},
    "inferModel": {"inputs": [{"name": "name", "shape": [1], "datatype": "BYTES", "data": ["x"]}]},
    "inferModelVersion": {"inputs": [{"name": "name", "shape": [1], "datatype": "BYTES", "data": ["x"]}]},
    "putCurve": {
        "gpu": "CPU",
        "slice": "slot",
        "points": [{"batch": 1, "throughput": 9.0, "p50_ms": 9.0, "p95_ms": 9.0, "samples": 9}],
    },
    "beginTrial": {"gpu": "CPU", "slice": "slot"},
    "deployApp": DEPLOY,
    "createKey": {"scopes": ["invoke"]},
    "createTenant": {"name": "new"},
    "createTenantKey": {"scopes": ["invoke"]},
    "setLimits": {"concurrency": 1},
    "setFunctionLimits": {"concurrency": 1},
    "changeTenant": {"disabled": True},
    "eraseTenant": {"confirmation": "0123456789"},
    "setTier": {"weight": 2},
    "setPrice": {"usd_per_hour": "1"},
    "setBudget": {"usd": "1"},
    "grantCredit": {"usd": "1"},
    "shareApp": {},
    "putAlias": {"version": "v1"},
    "rotateKey": {},
    "rotateTenantKey": {},
    "createWebhook": {"url": "https://hooks.example.com/"},
    "changeWebhook": {"disabled": True},
    "rotateWebhookSecret": {},
    "setIssuer": {"url": "https://login.example.com", "audience": "api", "tenant": "acme"},
    "setPolicy": {},
    "setPlatformPolicy": {},
    "setTrustedKey": {"pem": "no key"},
    "revokeTrustedKey": {},
    "setSigningKeys": {"root": 43 * "A" + "=", "key_set": "", "signature": ""},
    "resignVersions": {},
    "setSecret": {"value": "rivals-own-value"},
    "setPool": {"types": [{"name": "local"}]},
    "openSession": {},
    "exchangeCode": {"code": f"pl_login_{43 * 'x'}"},
    "pushWeights": {"parts": [{"path": "m.json", "sha256": hashlib.sha256(b"acme's--blob").hexdigest(), "size": 12}]},
    "joinNode": {"token": f"pl_join_{8 * '0'}_{40 * '0'}", "node": "n1", "key": Nkey.generate(NkeyKind.USER).public},
}

OF_MODELS: dict[str, Any] = {
    "createChatCompletion": {"messages": [{"role": "user", "content": "hi"}]},
    "createCompletion": {"prompt": "hi"},
    "createResponse": {"input": "hi"},
    "createEmbeddings": {"input": "hi"},
}
"""What these take beside a model's name."""


@dataclass
class Names:
    """What stands for the parts of addresses."""

    ref: str
    app: str
    id: str
    tenant: str
    function: str
    sha256: str
    tier: str = "free"
    grantee: str = "friend"
    webhook: str = ""
    delivery: str = ""
    batch: str = ""
    container: str = "ctr_hush-hush"
    price: str = "h100"
    month: str = "2026-09"
    budget: str = "month"
    grant: str = "grant_of_acme"
    node: str = "n1"
    issuer: str = "corp"
    pool: str = "spare"
    name: str = "acmes-token"
    model: str = "acme/tiny-1.5"
    file: str = "file-00000000000000000001"
    version: str = "1"
    alias: str = "prod"
    word: str = "abort"

    def of(self, operation: Operation[Any]) -> dict[str, str]:
        names = dict(vars(self))
        if operation.path.startswith("/v2"):
            names["model"] = self.ref
        if "/webhooks/" in operation.path:
            names["id"] = self.webhook
        elif "/keys/" not in operation.path:
            names["id"] = CALL if self.tenant == "acme" else NO_CALL
        return names


@pytest.fixture
async def acme(world: World) -> Names:
    """A tenant that has one of everything there is."""
    (version,) = world.deploy(function("hello", env={"TOKEN": SECRET}, serves=("acme/tiny-1.5",)))
    world.calls.listed = [{"id": "ctr_hush-hush", "tenant": "acme", "version": version.id, "app": "shop"}]
    stream = world.services.streams.keeper.open(CALL, "acme", 30.0)
    stream.end(1, SECRET.encode())
    world.services.tracing.keeper.calls.add(kept_call(id=CALL, detail=SECRET))
    world.calls.statuses["acme", CALL] = CallStatus(id=CALL, state="running", version="shop.hello@v1", age_ms=1.0)
    await world.services.jobs.store.create(dead_job(id=CALL, tenant="acme"))
    world.ledger.fold("USAGE", 1, delivered([busy(1, 0, ("a", SECOND, "ok"), app="hush-hush")]))
    line = LogLine(at=WALL, stream="stdout", text=SECRET, container="ctr_hush-hush")
    world.logs.kept = [
        DecodedMessage(seq=1, at=WALL, subject="logs.local.n1.acme.shop.hello", message=LogBatch(lines=(line,)))
    ]
    records = world.registry
    records.tenant_records["acme"] = TenantRecord(name="acme", created_at=WALL, tier="enterprise")
    functions = {"acme:shop.hello": Limits(concurrency=7)}
    records.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(concurrency=9), functions=functions)
    records.share_records["acme", "shop"] = FunctionShareRecord(tenant="acme", app="shop", grants={"friend": ()})
    records.budget_records["acme"] = BudgetsRecord(tenant="acme", budgets=(Budget(id="month", amount=7),))
    records.rollout_records["acme", "shop"] = RolloutRecord(
        tenant="acme",
        app="shop",
        revision=1,
        aliases={"hello": {"prod": version.id}},
        rollout=Rollout(
            id="rol_of_acme", number=1, control={"hello": version.id}, canary={"hello": SECRET}, salt=bytes(32),
            since=WALL, started_at=WALL, by=world.key.id,
        ),
    )  # fmt: skip
    grant = CreditGrant(id="grant_of_acme", amount=7, begins="2026-09-01", note=SECRET)
    records.credit_records["acme"] = CreditsRecord(tenant="acme", grants=(grant,))

    webhook = webhook_of("acme", url=f"https://{SECRET}.example.com/")
    delivery = ping_event("acme", webhook.id, WALL)
    await world.services.webhooks.change_webhook("acme", webhook.id, lambda _: webhook)
    await world.services.webhooks.change_delivery("acme", webhook.id, delivery.id, lambda _: delivery)

    await set_secret(world.services.vault, "acme", "acmes-token", SECRET, by=world.key.id, at=WALL)
    revision = WeightsRevision(digest=BLOB, files=1, parts=1, size=12, pushed_at=WALL, pushed_by=world.key.id)
    weights = WeightsRecord(tenant="acme", name="acmes-token", revisions=(revision,))
    records.weights_records["acme", "acmes-token"] = weights

    records.model_records["acme", "acme/tiny-1.5"] = ModelRecord(
        tenant="acme", name="acme/tiny-1.5", app="shop", function="hello", created_at=WALL, claimed_at=WALL
    )
    file_id = "file-00000000000000000001"
    records.file_records["acme", file_id] = FileRecord(
        tenant="acme", id=file_id, name=SECRET, purpose="batch", size=0, created_at=WALL, expires_at=WALL * 2,
        by=world.key.id, parts=(),
    )  # fmt: skip
    await world.batches.create(batch("acme", id="batch_00000000000000000001", label=SECRET))

    async def content() -> Any:
        yield b"acme's--blob"

    await world.blobs.put("acme", BLOB, content())
    return Names(
        ref="acme:shop.hello", app="shop", id=world.key.id, tenant="acme", function="shop.hello", sha256=BLOB,
        webhook=webhook.id, delivery=delivery.id, batch="batch_00000000000000000001",
    )  # fmt: skip


NOBODY = Names(
    ref="nobd:shop.hello", app="nada", id="00000000", tenant="nobd", function="nada.hello", sha256=NO_BLOB,
    webhook="wh_00000000000000000000", delivery=f"msg_{32 * '0'}", batch="batch_99999999999999999999",
    container="ctr_none-none", budget="other", grant="grant_of_none", name="nobodys-token",
    model="nobd/tiny-1.5", file="file-99999999999999999999",
)  # fmt: skip


async def ask(client: httpx.AsyncClient, operation: Operation[Any], names: Names) -> httpx.Response:
    path = operation.path.format_map(names.of(operation))
    if operation.name == "submitBatch":
        headers = {"content-type": "application/x-ndjson"}
        return await client.post(path, content=b"{}", headers=headers, params={"function": names.ref})
    if operation.name == "uploadFile":
        return await client.post(path, data={"purpose": "batch"}, files={"file": ("in.jsonl", b"{}")})
    if operation.name in OF_MODELS:
        return await client.post(path, json={"model": names.model, **OF_MODELS[operation.name]})
    if operation.name == "putBlob":
        return await client.put(path, content=b"acme's--blob" if names.sha256 == BLOB else b"nobodys-blob")
    return await client.request(operation.method, path, json=BODIES.get(operation.name))


def said(answer: httpx.Response, operation: Operation[Any], names: Names) -> tuple[int, dict[str, str], str]:
    """The answer without what differs between any two requests: the names that were asked for, and its own id."""
    text = answer.text
    asked = operation.path + ("{ref}" if operation.name == "submitBatch" else "")
    asked += "{model}" if operation.name in OF_MODELS else ""
    parts = {key: value for key, value in names.of(operation).items() if f"{{{key}}}" in asked}
    for key, value in sorted(parts.items(), key=lambda part: -len(part[1])):
        text = text.replace(value, f"<{key}>")
    headers = {key: value for key, value in answer.headers.items() if key not in ("x-request-id", "content-length")}
    if "application/problem" in headers.get("content-type", ""):
        document = answer.json()
        text = text.replace(document["request_id"], "")
    headers.pop("pilotlight-call-id", None)
    return answer.status_code, headers, text


def everything_of(world: World) -> bytes:
    """What the registry and the blob store hold of acme."""
    records = world.registry
    held = (
        records.tenant_records["acme"],
        [key for key in records.key_records.values() if key.tenant == "acme"],
        records.limit_records["acme"],
        records.budget_records["acme"],
        records.credit_records["acme"],
        records.share_records["acme", "shop"],
        records.rollout_records["acme", "shop"],
        records.apps["acme", "shop"],
        [version for version in records.versions.values() if version.tenant == "acme"],
        sorted(records.tier_records),
        list(world.batches.kept.values()),
        [record for record in world.webhooks.webhook_records.values() if record.tenant == "acme"],
        [record for record in world.webhooks.delivery_records.values() if record.tenant == "acme"],
        world.jobs.writes,
        world.services.vault.store.secrets("acme"),
        [record for record in records.weights_records.values() if record.tenant == "acme"],
        [record for record in records.model_records.values() if record.tenant == "acme"],
        [record for record in records.file_records.values() if record.tenant == "acme"],
    )
    return msgspec.json.encode(held)


GUARDED = [operation for operation in OPERATIONS if operation.scopes]
ABOUT_THE_ASKER = (
    "createKey", "openSession", "createWebhook", "getUsage", "setSecret", "pushWeights", "uploadFile",
)  # fmt: skip
"""Their answers are random, or about the asker alone: nothing in the address differs."""


@pytest.mark.parametrize("operation", GUARDED, ids=lambda operation: operation.name)
async def test_what_is_anothers_is_as_if_it_were_not_there(
    world: World, acme: Names, operation: Operation[Any]
) -> None:
    """The same status, headers and text, whether it is acme's or nobody's; and acme keeps all that it has."""
    before = everything_of(world)
    for scopes in (("read", "deploy", "invoke"), ("admin",)):
        async with world.client(world.add_key("rival", *scopes)) as rival:
            theirs = await ask(rival, operation, acme)
            absent = await ask(rival, operation, NOBODY)

        if operation.name in ABOUT_THE_ASKER:
            assert theirs.status_code == absent.status_code, scopes
        else:
            assert said(theirs, operation, acme) == said(absent, operation, NOBODY), scopes
        assert everything_of(world) == before, scopes
        assert not world.calls.cancelled, scopes
        named = any(part in operation.path for part in ("{ref}", "{id}", "{tenant}", "{model}", "{file}"))
        named = named or operation.name in OF_MODELS
        assert not named or theirs.status_code in (403, 404), scopes
        for private in (SECRET, world.key.id, "enterprise"):
            assert private not in said(theirs, operation, acme)[2], scopes


async def test_without_a_key_nothing_is_told(world: World, acme: Names) -> None:
    """401 for whatever is guarded, before anything is looked at; what is open names no tenant's things."""
    before = everything_of(world)
    async with world.client("") as stranger:
        for operation in OPERATIONS:
            theirs = await ask(stranger, operation, acme)
            absent = await ask(stranger, operation, NOBODY)

            believed = not operation.scopes and operation.name not in ("joinNode", "exchangeCode")  # of own tokens
            expected = 200 if believed else 401
            assert (theirs.status_code, absent.status_code) == (expected, expected), operation.name
            for private in (SECRET, world.key.id, "acme", "shop"):
                assert private not in theirs.text, operation.name
    assert everything_of(world) == before


async def test_a_share_opens_one_function_to_one_tenant(world: World, acme: Names) -> None:
    """Whom it is shared with may call and read how to call; nothing else of the owner opens."""
    opened = []
    async with world.client(world.add_key("friend", "admin")) as friend:
        for operation in GUARDED:
            answer = await ask(friend, operation, acme)
            if "{" in operation.path and answer.status_code < 400:
                opened.append(operation.name)

    # An invoice is that of whoever asks, and so are a secret and weights.
    own = {
        "deployApp",
        "getInvoice",
        "putBlob",
        "setSecret",
        "removeSecret",
        "pushWeights",
        "getWeights",
        "removeWeights",
    }
    fronts: tuple[Operation[Any], ...] = (*INFER, *TENSOR_MODELS)
    models = {operation.name for operation in fronts if "{model}" in operation.path}
    assert set(opened) == {"callFunction", "describeFunction", *models, *own}
    assert {call.tenant for call in world.calls.seen} == {"friend"}
    assert ("friend", "shop") not in world.registry.apps  # its own deploy wants its own blob first


async def test_a_deploy_finds_out_nothing_about_anothers_blobs(world: World, acme: Names) -> None:
    """A file that acme has uploaded is missing for everybody else."""
    async with world.client(world.add_key("rival", "deploy")) as rival:
        answer = await rival.post("/v1/apps/shop/deploys", json=DEPLOY)

    assert answer.json()["missing"] == [BLOB]
