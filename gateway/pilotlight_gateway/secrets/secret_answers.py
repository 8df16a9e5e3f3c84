"""Who is given values: the node on which a container is bound, of the secrets that its version names."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import structlog

from pilotlight_core.bus import Bus, BusError, bus_users
from pilotlight_core.host.binding_book import Bindings
from pilotlight_core.host.sealed_boxes import seal_box
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.agent_questions import SecretsAnswer, SecretsWanted
from pilotlight_core.model.secrets.secret_uses import secrets_named
from pilotlight_gateway.secrets.platform_keys import NoPlatformKey, PlatformKeyDown
from pilotlight_gateway.secrets.secret_records import revision_of
from pilotlight_gateway.secrets.tenant_vault import OtherPlatformKey, SecretsLost, TenantVault
from pilotlight_gateway.tenancy.registry_port import RegistryPort

QUEUE = "secret-answers"
"""One gateway answers each question."""
AT_ONCE = 32
"""Questions of one node; more are told to come later."""

log = structlog.get_logger(__name__)


class ContainerSecrets:
    """Decides which node gets which values. `node` is the one that the message's subject names."""

    def __init__(self, vault: TenantVault, registry: RegistryPort, bindings: Bindings) -> None:
        self._vault = vault
        self._registry = registry
        self._bindings = bindings

    async def answer(self, node: str, wanted: SecretsWanted) -> SecretsAnswer:
        """The values, sealed to the load that asks, or why there are none. Raises BusError."""
        binding = self._bindings.live(wanted.container)
        version = None
        if binding is not None and binding.node == node:
            version = await self._registry.fetch_version(binding.version)
        if version is None:
            return SecretsAnswer(reason="not_bound")
        found = {name: await self._vault.store.secret(version.tenant, name) for name in secrets_named(version.spec)}
        if missing := tuple(name for name, record in found.items() if record is None):
            return SecretsAnswer(reason="missing", missing=missing)
        records = {name: record for name, record in found.items() if record is not None}
        try:
            values = await self._vault.open_all(version.tenant, records)
        except SecretsLost as error:
            return SecretsAnswer(reason="lost", missing=error.names)
        except OtherPlatformKey as error:
            log.error("secrets cannot be given to a container", why=str(error))
            return SecretsAnswer(reason="other_key")
        except (NoPlatformKey, PlatformKeyDown) as error:
            log.error("secrets cannot be given to a container", why=str(error))
            return SecretsAnswer(reason="down")
        box = seal_box(wanted.public_key, msgspec.msgpack.encode(values), wanted.container)
        return SecretsAnswer(sealed=box, revision=revision_of(records))


class SecretAnswers:
    """Answers agents' questions over the bus while `running` is open."""

    def __init__(self, bus: Bus, secrets: ContainerSecrets, *, region: str) -> None:
        self._bus = bus
        self._secrets = secrets
        self._region = region
        self._busy: Counter[str] = Counter()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer until the block ends."""
        async with asyncio.TaskGroup() as group:

            def receive(subject: str, message: Any, reply: str) -> None:
                node = subjects.node_of(subject)
                # A gateway may publish where a node may not: it answers into that node's inbox alone.
                if not isinstance(message, SecretsWanted) or not reply.startswith(f"{bus_users.agent_inbox(node)}."):
                    return
                if self._busy[node] >= AT_ONCE:
                    self._send(reply, SecretsAnswer(reason="busy"))
                    return
                self._busy[node] += 1
                answers.add(task := group.create_task(self._answer(node, message, reply)))
                task.add_done_callback(answers.discard)

            answers: set[asyncio.Task[None]] = set()
            heard = await self._bus.subscribe(subjects.secrets(self._region), receive, queue=QUEUE)
            try:
                yield
            finally:
                await heard.unsubscribe()
                for task in answers:
                    task.cancel()

    async def _answer(self, node: str, wanted: SecretsWanted, reply: str) -> None:
        try:
            self._send(reply, await self._secrets.answer(node, wanted))
        except (BusError, ValueError) as error:  # ValueError: no key of a curve
            log.warning("a node's question for secrets could not be answered", node=node, error=type(error).__name__)
        except Exception as error:  # noqa: BLE001 - not with its text or its variables, which may hold a value
            log.error("a node's question for secrets failed", node=node, error=type(error).__name__)
        finally:
            self._busy[node] -= 1
            if not self._busy[node]:
                del self._busy[node]

    def _send(self, reply: str, answer: SecretsAnswer) -> None:
        try:
            self._bus.publish_nowait(reply, answer)
        except BusError as error:
            log.debug("an answer was not sent", error=str(error))
