"""Who is given values: the node on which a container is bound, of the secrets that its version names."""

from __future__ import annotations

import msgspec
import structlog

from pilotlight_core.bus import Bus
from pilotlight_core.host.binding_book import Bindings
from pilotlight_core.host.sealed_boxes import seal_box
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.agent_questions import SecretsAnswer, SecretsWanted
from pilotlight_core.model.secrets.secret_uses import secrets_named
from pilotlight_gateway.fleet.node_questions import NodeQuestions
from pilotlight_gateway.secrets.data_keys import OtherPlatformKey
from pilotlight_gateway.secrets.platform_keys import NoPlatformKey, PlatformKeyDown
from pilotlight_gateway.secrets.secret_records import revision_of
from pilotlight_gateway.secrets.tenant_vault import SecretsLost, TenantVault
from pilotlight_gateway.tenancy.registry_port import RegistryPort

QUEUE = "secret-answers"
"""One gateway answers each question."""

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


def secret_answers(bus: Bus, secrets: ContainerSecrets, *, region: str) -> NodeQuestions[SecretsWanted]:
    """What answers agents' questions for secrets over the bus."""
    busy = SecretsAnswer(reason="busy")
    return NodeQuestions(bus, subjects.secrets(region), SecretsWanted, secrets.answer, queue=QUEUE, busy=busy)
