"""The values of a version's secrets, asked for when a container loads; gateways alone can unseal them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from pilotlight_core.bus import BusError, NoResponders
from pilotlight_core.host.sealed_boxes import BoxReader, CannotOpen
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.agent_questions import SecretsAnswer, SecretsWanted
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.node_messages import Bind
from pilotlight_core.model.secrets.secret_uses import secrets_of
from pilotlight_core.model.spec import FunctionSpec

ASK_S = 8.0
"""For one answer of a gateway, which may have to ask a key service."""
ASKS = 20
PAUSE_S = 0.25
"""Between two questions: a gateway may hear of a binding later than its node does."""
AGAIN = frozenset({"not_bound", "busy", "down", "other_key"})
"""Reasons after which a later answer, or another gateway's, may be better."""
MEND = {
    "missing": "there is no secret {names}: run `pilotlight secret set {first}`",
    "lost": "the value of {names} was sealed under a key that is gone: run `pilotlight secret set {first}`",
}
"""What the tenant can do."""


class SecretsRefused(Exception):
    """There are no values. `is_tenants`: what its tenant can mend, else it is the platform's fault."""

    def __init__(self, reason: str, *, is_tenants: bool) -> None:
        super().__init__(reason)
        self.is_tenants = is_tenants


@dataclass(frozen=True, kw_only=True)
class LoadedSecrets:
    """What one load is given."""

    places: dict[str, str] = field(default_factory=dict)
    """Variable, or file, and the value there."""
    revision: str = ""
    """Names the values, as the container reports it."""

    def __repr__(self) -> str:
        return f"LoadedSecrets({', '.join(self.places)})"


class LoadSecretSource(Protocol):
    async def fetch(self, bind: Bind, spec: FunctionSpec) -> LoadedSecrets:
        """The values for a load of the version that `bind` names. Raises SecretsRefused."""
        ...


@dataclass(kw_only=True)
class MemoryLoadSecrets:
    """A `LoadSecretSource` that gives what tests set."""

    loaded: LoadedSecrets = field(default_factory=LoadedSecrets)

    async def fetch(self, bind: Bind, spec: FunctionSpec) -> LoadedSecrets:  # noqa: ARG002
        return self.loaded


class SecretAsker(Protocol):
    async def request(self, subject: str, message: Message, timeout: float) -> object:
        """The reply; raises BusError."""
        ...


class SecretRequests:
    """`LoadSecretSource` over the bus."""

    def __init__(self, bus: SecretAsker, *, region: str, node: str) -> None:
        self._bus = bus
        self._subject = subjects.secrets(region, node)

    async def fetch(self, bind: Bind, spec: FunctionSpec) -> LoadedSecrets:
        uses = secrets_of(spec)
        if not uses:
            return LoadedSecrets()
        reader = await asyncio.to_thread(BoxReader)
        answer = await self._ask(SecretsWanted(container=bind.container, public_key=reader.public))
        places = _placed(reader, answer, bind.container, uses)
        if places is None:  # not in a handler of what went wrong: no value of the answer may become part of a message
            raise SecretsRefused("the values of its secrets cannot be read", is_tenants=False)
        return LoadedSecrets(places=places, revision=answer.revision)

    async def _ask(self, wanted: SecretsWanted) -> SecretsAnswer:
        why = ""
        for _ in range(ASKS):
            try:
                answer = await self._bus.request(self._subject, wanted, ASK_S)
            except NoResponders:
                why = "no gateway is there"
            except BusError as error:
                why = str(error)
            else:
                if isinstance(answer, SecretsAnswer):
                    if answer.sealed:
                        return answer
                    why = answer.reason
                    if why in MEND:
                        names = ", ".join(answer.missing)
                        first = answer.missing[0] if answer.missing else "NAME"
                        raise SecretsRefused(MEND[why].format(names=names, first=first), is_tenants=True)
                if why not in AGAIN:
                    break
            await asyncio.sleep(PAUSE_S)
        raise SecretsRefused(f"no gateway gave the values of its secrets: {why}", is_tenants=False)


def _placed(reader: BoxReader, answer: SecretsAnswer, container: str, uses: Mapping[str, str]) -> dict[str, str] | None:
    """The value of each place; None: the answer is none."""
    try:
        values = msgspec.msgpack.decode(reader.open(answer.sealed, container), type=dict[str, str])
        return {place: values[name] for place, name in uses.items()}
    except (CannotOpen, msgspec.DecodeError, KeyError):
        return None
