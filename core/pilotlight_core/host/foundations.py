"""What all processes of a platform have in common: the key that signs manifests, the blob store, and the ledger.

The first gateway of a region registers its own on the bus. Whoever has another one is refused, with what to do: two
keys, stores or ledgers would look like failures of tenants' functions, or lose part of the bill.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import msgspec
import structlog

from pilotlight_core.bus import Bus, BusError
from pilotlight_core.bus.kv import NewValue
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.subjects import PLATFORM_BUCKET

ASK_EVERY_S = 5.0

log = structlog.get_logger(__name__)


class WrongFoundation(Exception):
    """The process has another key, blob store or ledger than its platform; the message says what to do."""


class Foundation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The names of what a process uses; "": it uses none, or could not ask."""

    manifest_key: str = ""
    blob_store: str = ""
    ledger: str = ""


MEND = {
    "manifest_key": (
        "the key that signs manifests",
        (
            "copy the folder keys of a gateway's --state-dir here (agents need manifest_ed25519.pub only, which "
            "--trusted-keys may name), or vouch for several keys with one of your own: docs/hosts.md"
        ),
    ),
    "blob_store": (
        "the blob store",
        "give all gateways, agents and duties the same --blob-url, or mount the same folder there",
    ),
    "ledger": ("the ledger", "give all gateways and duties the same --ledger-url"),
}
"""What each is in words, and how to have the right one."""
SECRETS_KEY = "secrets_key"
"""What seals the secrets of tenants. No record of a foundation has it: a platform without secrets has none."""
ADOPTED = (*MEND, SECRETS_KEY)
ADOPT = "If the platform's own is lost for good, start one gateway with --adopt {name}."


def check_foundation(registered: Foundation, own: Foundation) -> None:
    """Compare what a process has with what its platform has.

    Raises:
        WrongFoundation: naming the first that differs.
    """
    for name, (what, mend) in MEND.items():
        ours, theirs = getattr(own, name), getattr(registered, name)
        if ours and theirs and ours != theirs:
            raise WrongFoundation(
                f"{what} that this process has ({ours}) is not that of its platform ({theirs}): {mend}. "
                f"{ADOPT.format(name=name)}"
            )


def registered_with(present: Foundation | None, own: Foundation, adopted: Iterable[str] = ()) -> Foundation:
    """The record after a gateway with `own` has joined: what is missing is added, what is `adopted` is replaced."""
    present = present or Foundation()
    chosen = {
        name: (ours if ours and (name in adopted or not theirs) else theirs)
        for name in MEND
        for ours, theirs in [(getattr(own, name), getattr(present, name))]
    }
    return Foundation(**chosen)


def read_adopted(text: str) -> tuple[str, ...]:
    """The names in a list with commas.

    Raises:
        BadInput: one of them is none.
    """
    names = tuple(filter(None, (part.strip() for part in text.split(","))))
    if wrong := [name for name in names if name not in ADOPTED]:
        raise BadInput(f"adopt: expected some of {', '.join(ADOPTED)}, not {wrong[0]!r}.", field="adopt")
    return names


class Foundations:
    """The record of a region."""

    def __init__(self, bus: Bus, *, region: str) -> None:
        self._kv = bus.kv(PLATFORM_BUCKET)
        self._key = f"foundation.{region}"

    async def read(self) -> Foundation | None:
        """None: no gateway has registered what it has. Raises BusError."""
        entry = await self._kv.get(self._key)
        return None if entry is None else msgspec.msgpack.decode(entry.value, type=Foundation)

    async def register(self, own: Foundation, adopted: Iterable[str] = ()) -> None:
        """Add what a gateway has, unless another has registered its own.

        Raises:
            WrongFoundation: another has, and it differs. BusError.
        """
        made = own

        def changed(value: bytes | None) -> NewValue | None:
            nonlocal made
            present = None if value is None else msgspec.msgpack.decode(value, type=Foundation)
            made = registered_with(present, own, adopted)
            return None if made == present else NewValue(msgspec.msgpack.encode(made))

        await self._kv.change(self._key, changed)
        check_foundation(made, own)

    async def check(self, own: Callable[[Foundation], Awaitable[Foundation]]) -> bool:
        """Compare; False: nothing is known yet. `own` gets what the platform has.

        Raises:
            WrongFoundation.
        """
        try:
            registered = await self.read()
            ours = None if registered is None else await own(registered)
        except BusError as error:  # the gateways may be of a release that registers nothing
            log.info("what the platform stands on is not known yet", error=str(error))
            return False
        if registered is None or ours is None:
            return False
        check_foundation(registered, ours)
        return True

    async def check_until_known(self, own: Callable[[Foundation], Awaitable[Foundation]]) -> None:
        """After a first `check`: compare as soon as a gateway has registered what it has.

        Raises:
            WrongFoundation.
        """
        while True:
            await asyncio.sleep(ASK_EVERY_S)
            if await self.check(own):
                return
