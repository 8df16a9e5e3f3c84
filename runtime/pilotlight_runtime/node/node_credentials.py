"""The file of a node that has joined by a token: who it is, and the seeds of its keys.

An agent renews its identity long before it expires, with a new key, over the connection that it has. The new seed is
written down before the gateway is asked, and taken for the node's only once that has answered; either opens until the
next renewal, so no lost answer locks a node out.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import structlog
from msgspec.structs import replace

from pilotlight_core.bus import Bus, BusError
from pilotlight_core.bus.nkeys import BadNkey, Nkey, NkeyKind
from pilotlight_core.host.config import AgentSettings
from pilotlight_core.host.file_permissions import why_open
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages.node_messages import NodeRenewal, RenewNode
from pilotlight_core.model.versions.public_keys import public_pem

FILE_NAME = "node.json"
ASK_S = 5.0
AGAIN_S = 60.0
"""After a renewal that failed."""
LOOK_S = 600.0
"""The longest sleep: a machine that was suspended finds out soon that it is late."""

log = structlog.get_logger(__name__)


class NodeCredentials(msgspec.Struct, frozen=True, kw_only=True):
    """The file's content."""

    node: str
    region: str
    zone: str
    spot: bool
    bus_url: str
    seed: str
    next_seed: str = ""
    """Of a renewal that was not answered yet."""
    renewed_at: float = 0.0
    expires_at: float = 0.0

    def key(self) -> Nkey:
        """The key to connect with.

        Raises:
            BadInput: the file was changed.
        """
        try:
            return Nkey.from_seed(self.seed, NkeyKind.USER)
        except BadNkey as error:
            raise BadInput(f"credentials: {error} Join anew: pilotlight node join.", field="credentials") from None


def read_credentials(path: Path) -> NodeCredentials:
    """The credentials in a file.

    Raises:
        BadInput: there are none, or others may read them.
    """
    try:
        why = why_open(path)
        found = msgspec.json.decode(path.read_bytes(), type=NodeCredentials)
    except (OSError, msgspec.DecodeError) as error:
        raise BadInput(
            f"credentials: there are none in {path} ({error}); 'pilotlight node join URL --token …' writes them.",
            field="credentials",
        ) from None
    if why:
        raise BadInput(f"credentials: {why} To replace it, join anew: pilotlight node join.", field="credentials")
    return found


def trusted_file(path: Path) -> Path:
    """Where the public keys are that came with a token, by the file of the credentials."""
    return path.with_name(f"{path.stem}.trusted.pem")


def write_credentials(path: Path, credentials: NodeCredentials) -> None:
    """Write them at once or not at all, for the file's owner alone.

    Raises:
        OSError.
    """
    _write_whole(path, msgspec.json.format(msgspec.json.encode(credentials)) + b"\n")


def write_trusted(path: Path, keys: Sequence[bytes]) -> None:
    """Write beside the file of the credentials whom a token trusts, in the place of those of a former one.

    Raises:
        OSError.
    """
    if keys:
        _write_whole(trusted_file(path), public_pem(*keys))
    else:
        trusted_file(path).unlink(missing_ok=True)


def _write_whole(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def with_credentials(settings: AgentSettings, at: float) -> tuple[AgentSettings, NodeCredentials | None]:
    """The settings of an agent whose node has joined, at the unix second `at`: what its credentials say counts.

    Raises:
        BadInput: the file is named and there is none, or they have expired.
    """
    if not settings.credentials:
        return settings, None
    found = read_credentials(Path(settings.credentials).expanduser())
    if 0 < found.expires_at <= at:
        raise BadInput(
            f"credentials: the identity of {found.node} has expired, since its agent did not run to renew it. Make a "
            f"token for it, 'pilotlight node token --node {found.node}', remove {settings.credentials}, and join anew.",
            field="credentials",
        )
    trusted = trusted_file(Path(settings.credentials).expanduser())
    own = replace(
        settings, node=found.node, region=found.region, zone=found.zone, spot=found.spot, nats_url=found.bus_url,
        trusted_keys=settings.trusted_keys or (str(trusted) if trusted.exists() else ""),
    )  # fmt: skip
    return own, found


def renewal_due_in(credentials: NodeCredentials, at: float) -> float:
    """Seconds until an identity is to be renewed: when half of its life is over."""
    return max(0.0, (credentials.renewed_at + credentials.expires_at) / 2 - at)


class CredentialRenewal:
    """Renews what is in a file until cancelled. `wall`: unix seconds."""

    def __init__(self, bus: Bus, path: Path, held: NodeCredentials, wall: Callable[[], float]) -> None:
        self._bus = bus
        self._path = path
        self.held = held
        self._wall = wall

    async def run(self) -> None:
        """Renew in time, for ever."""
        while True:
            if wait := renewal_due_in(self.held, self._wall()):
                await asyncio.sleep(min(wait, LOOK_S))
                continue
            if not await self.renew():
                await asyncio.sleep(AGAIN_S)

    async def renew(self) -> bool:
        """Renew now; False: it is to be tried again. The connection goes on meanwhile, and knows the new key then."""
        held = self.held
        key = Nkey.from_seed(held.next_seed, NkeyKind.USER) if held.next_seed else Nkey.generate(NkeyKind.USER)
        try:
            self._keep(replace(held, next_seed=key.seed))
            subject = subjects.renew(held.region, held.node)
            answer = await self._bus.request(subject, RenewNode(key=key.public), ASK_S)
            if not isinstance(answer, NodeRenewal) or answer.reason:
                reason = answer.reason if isinstance(answer, NodeRenewal) else "the answer is none"
                log.error("the node's identity is not renewed", reason=reason)
                return False
            at = self._wall()
            self._keep(replace(held, seed=key.seed, next_seed="", renewed_at=at, expires_at=answer.expires_at))
        except (BusError, OSError) as error:
            log.warning("the node's identity is renewed later", error=str(error))
            return False
        self._bus.use_key(key)
        log.info("the node's identity is renewed", expires_at=answer.expires_at)
        return True

    def _keep(self, credentials: NodeCredentials) -> None:
        write_credentials(self._path, credentials)
        self.held = credentials
