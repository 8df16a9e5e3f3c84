"""The API against its own document, by somebody else's judge: all checks of schemathesis, on a served gateway.

Three callers are known: the admins of two tenants, which must not see each other's things, and an operator. Whatever
an operation refuses to one of them is asked as the next one.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from pilotlight_gateway.http.listening_socket import listen, url_of
from pilotlight_gateway.http.server import make_server
from pilotlight_gateway.tenancy.api_keys import new_key
from pilotlight_gateway.tenancy.auth import Authenticator, KeyAuthenticator, Principal
from tests.gateway.world import World, function, generator

CALLERS = {
    "acme": Principal(tenant="acme", key_id="standing", scopes=frozenset({"admin"})),
    "rival": Principal(tenant="rival", key_id="standing", scopes=frozenset({"admin"})),
    "operator": Principal(tenant="platform", key_id="standing", scopes=frozenset({"admin", "operator"})),
}
HOOKS = """
import json
import schemathesis

@schemathesis.serializer(
    "application/x-ndjson", "application/jsonl", "application/jsonlines", "application/x-jsonlines"
)
def lines(context, value):
    return json.dumps(value).encode()
"""
"""How the judge writes what it cannot by itself."""
CONFIG = """
[auth.wfc]
path = "{folder}/callers.json"
peers = ["acme", "rival"]

# What these take depends on more than a schema can say: rules between the fields of a deploy, a function's own schema
# (which its own document has), that one day comes after another, that a digest is that of the content, that a line of
# a secret can be hidden, that parts of weights agree with each other, that a text is a licence or a key of a curve,
# that a batch is of lines of inputs or of a file of requests, that the gate of a rollout is where a webhook may be.
[[operations]]
include-operation-id = [
    "deployApp", "planPlacement", "callFunction", "getUsage", "putBlob", "createWebhook", "changeWebhook",
    "setSecret", "pushWeights", "submitBatch", "setPolicy", "setTrustedKey",
    "startRollout"
]
checks.positive_data_acceptance.expected-statuses = [
    "2xx", "401", "403", "404", "406", "409", "422", "429", "5xx"
]

# And these, of what operators do, each for a rule between its fields, or with what is not in the request:
#   getUsageEvents, getFleetCosts   `to` is a day after `from`
#   changeTenant                    each of `network` is a host's full name with a port, and stands there once
#   createKey, createTenantKey      `break_glass` is with the scope operator alone, and without `certificate`
#   grantCredit                     `usd` is more than nothing, and `ends` a day to come
#   setIssuer                       `url` and `jwks_url` are https addresses, or of this machine; tenants and groups fit
#   setPool                         `kubernetes` and `ec2` are with the `provider` of that name, and its types with it
#   setPrice                        `from` is a day or an instant to come, and after the changes that there are
#   setBudget                       `usd` is there unless it is `prepaid`, which has thresholds alone
#   eraseTenant                     `confirmation` is that of the plan
#   setPlatformPolicy               licences are of SPDX, packages have names, and each id to ignore stands there once
#   setSigningKeys                  the set is signed by the key that it names
#   setLimits, setFunctionLimits    `borrow` is more than nothing, or there is a `guarantee`, of which all leave room
[[operations]]
include-operation-id = [
    "getUsageEvents", "getFleetCosts", "changeTenant", "createKey", "createTenantKey", "grantCredit", "setIssuer",
    "setPool", "setPrice", "setBudget", "eraseTenant", "setLimits", "setFunctionLimits",
    "setPlatformPolicy", "setSigningKeys"
]
checks.positive_data_acceptance.expected-statuses = [
    "2xx", "401", "403", "404", "406", "409", "422", "429", "5xx"
]
"""


class StandingKeys:
    """Keys that the tests' callers keep whatever they revoke or disable; others are looked up as always."""

    def __init__(self, others: Authenticator) -> None:
        self.keys = {name: str(new_key()) for name in CALLERS}
        self._known = {f"Bearer {key}".encode(): CALLERS[name] for name, key in self.keys.items()}
        self._others = others

    def known(self, authorization: bytes) -> Principal | None:
        return self._known.get(authorization)

    async def authenticate(self, authorization: bytes) -> Principal:
        return self._known.get(authorization) or await self._others.authenticate(authorization)


@asynccontextmanager
async def served(world: World, folder: Path) -> AsyncIterator[str]:
    """The gateway on loopback, and a configuration for its judge in `folder`; the address of its document."""
    world.deploy(function("hello"), function("words", generator()))
    world.deploy(function("hello"), tenant="rival")
    world.add_key("rival")
    keys = world.services.authenticator = StandingKeys(KeyAuthenticator(world.registry))
    callers = [
        {"name": name, "fixedHeaders": [{"name": "Authorization", "value": f"Bearer {key}"}]}
        for name, key in keys.keys.items()
    ]
    (folder / "callers.json").write_bytes(msgspec.json.encode({"auth": callers}))
    (folder / "schemathesis.toml").write_text(CONFIG.format(folder=folder))
    (folder / "hooks.py").write_text(HOOKS)
    server = make_server(world.app)
    with listen("127.0.0.1", 0) as listening:
        async with world.services.workers.running(), asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listening]))
            try:
                yield f"{url_of(listening)}/openapi.json"
            finally:
                server.stop()


async def judge(world: World, folder: Path, *options: str) -> None:
    """Fail with what schemathesis says if it finds anything.

    For each request it reads the whole environment for proxies, twice: it has a small one.
    """
    async with served(world, folder) as address:
        command = ("--config-file", str(folder / "schemathesis.toml"), "run", address, "--checks", "all", *options)
        judging = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "schemathesis.cli", *command, "--no-shrink", "--no-color", "--workers", "1",
            cwd=folder, env={"PATH": os.environ["PATH"], "SCHEMATHESIS_HOOKS": "hooks"},
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        said, _ = await judging.communicate()
    if judging.returncode:
        pytest.fail(said.decode(errors="replace"), pytrace=False)


# What the operator makes, a tenant that asks for it next rightly does not find.
EACH = ("--exclude-checks", "ensure_resource_availability")
OPERATOR = ("--auth-wfc-user", "operator")
CALLERS_IN_TURN = ["each in turn", "operator"]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("caller", [EACH, pytest.param(OPERATOR, marks=pytest.mark.long)], ids=CALLERS_IN_TURN)
async def test_the_edges_of_every_schema_are_as_the_document_says(
    world: World, tmp_path: Path, caller: tuple[str, ...]
) -> None:
    """Each bound just met and just missed, each field left out, each method and header, and no key at all."""
    await judge(world, tmp_path, "--phases", "coverage", "--seed", "1", *caller)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("caller", [EACH, OPERATOR], ids=CALLERS_IN_TURN)
async def test_no_request_finds_a_violation(world: World, tmp_path: Path, caller: tuple[str, ...]) -> None:
    """Random requests and sequences of them, as each caller in turn and as the operator alone."""
    await judge(world, tmp_path, "--max-examples", "40", "--seed", "1", *caller)
