"""Whose manifests this node runs: those of the keys that it was given, and of those that such a key vouches for.

The platform's set of keys is read for each manifest, so that an expired or revoked key counts no more from the next
start of a container on. A node that has believed a set once starts nothing without one that it can believe.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from pilotlight_core.bus import BusError
from pilotlight_core.host.foundations import MEND, Foundation, WrongFoundation
from pilotlight_core.host.key_sets import KeySet, SignedKeySet
from pilotlight_core.host.signing import BadSignature, NoKey, Verifier, key_id
from pilotlight_core.model.spec import Manifest, SignedManifest


class KeySetReader(Protocol):
    async def read(self) -> SignedKeySet | None:
        """What the platform has; None: there is none. Raises BusError."""


class TrustedKeys:
    """Given keys are read when first needed, and again when another is met: the gateway may make one after this start.

    Args:
        source: file or folder of the given keys.
        sets: None: there is nothing to ask.
        newest: file in which the serial of the latest set is noted, so that no older one counts again; "": nowhere.
        wall: unix seconds.
    """

    def __init__(
        self,
        source: Path,
        sets: KeySetReader | None = None,
        newest: Path | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._wall = wall
        self._source = source
        self._sets = sets
        self._newest = newest
        self._given: tuple[Verifier, ...] = ()
        self._serial = 0

    async def verify(self, signed: SignedManifest) -> Manifest:
        """As `ManifestVerifier` has it."""
        return (await self.verifier(signed.key_id)).verify(signed)

    async def verifier(self, name: str) -> Verifier:
        """What verifies signatures of the key with this id.

        Raises:
            BadSignature: the key does not count, or not any more. NoKey, and ConnectionError: as `verify`.
        """
        given = self._named(name)
        if given is None:
            self._given = await asyncio.to_thread(Verifier.load_all, self._source)
            given = self._named(name)
        found = await self._set(given)
        if found is not None and found.terms_of(name) is not None:
            if why := found.fault(name, self._wall()):
                raise BadSignature(f"{why} The version is signed by it: deploy it again.")
            public = next(key for key in found.keys if key_id(key) == name)
            return given or Verifier(public)
        if given is not None:
            return given
        raise BadSignature(
            f"The manifest is signed by key {name}, which is not trusted here: neither was it given to this agent "
            "(--trusted-keys), nor is it in a set of the platform's that a given key vouches for."
        )

    async def foundation_key(self, registered: Foundation) -> str:
        """The key to compare with that of the platform; "": it has a set of them, which a given key vouches for.

        Raises:
            WrongFoundation: there is no given key, or none that vouches for the platform's set. BusError.
        """
        what, mend = MEND["manifest_key"]
        try:
            self._given = await asyncio.to_thread(Verifier.load_all, self._source)
            if self._sets is not None and (offered := await self._sets.read()) is not None:
                await self._believed(offered)
                return ""
        except NoKey as error:
            raise WrongFoundation(
                f"{error.detail} {what} of the platform is {registered.manifest_key}: {mend}."
            ) from None
        except BadSignature as error:
            raise WrongFoundation(
                f"{error.detail} Give this agent the operator's public key: --trusted-keys."
            ) from None
        return next(
            (each.key_id for each in self._given if each.key_id == registered.manifest_key), self._given[0].key_id
        )

    def _named(self, name: str) -> Verifier | None:
        return next((each for each in self._given if each.key_id == name), None)

    async def _set(self, given: Verifier | None) -> KeySet | None:
        """The platform's set of keys; None: it has none, or, of a given key, none that this node has ever believed.

        Raises:
            BadSignature: there was one, and there is none now that can be believed. ConnectionError: it cannot be read.
        """
        if self._sets is None:
            return None
        try:
            offered = await self._sets.read()
        except BusError as error:
            raise ConnectionError(f"the platform's set of keys cannot be read: {error}") from error
        self._serial = max(self._serial, await asyncio.to_thread(self._noted))
        if offered is None:
            if self._serial:
                raise BadSignature(
                    f"The platform's set of keys is gone, of which this node has seen that of {self._serial}: an "
                    "operator publishes it again ('pilotlight keyset publish')."
                )
            return None
        if given is not None and not self._serial and not await self._is_rooted(offered):
            return None
        return await self._believed(offered)

    async def _is_rooted(self, offered: SignedKeySet) -> bool:
        """Whether a given key vouches for it; the operator's may have been given since."""
        if all(each.public != offered.root for each in self._given):
            self._given = await asyncio.to_thread(Verifier.load_all, self._source)
        return any(each.public == offered.root for each in self._given)

    async def _believed(self, offered: SignedKeySet) -> KeySet:
        """Raises BadSignature: no given key has signed it, or it is older than one that was seen."""
        if not await self._is_rooted(offered):
            raise BadSignature(
                f"The platform's keys are vouched for by {key_id(offered.root)}, which is not among the keys in "
                f"{self._source}."
            )
        found = offered.check()
        self._serial = max(self._serial, await asyncio.to_thread(self._noted))
        if found.serial < self._serial:
            raise BadSignature(f"The platform's set of keys is of {found.serial}, older than one of {self._serial}.")
        if found.serial > self._serial:
            self._serial = found.serial
            await asyncio.to_thread(self._note)
        return found

    def _noted(self) -> int:
        try:
            return 0 if self._newest is None else int(self._newest.read_text())
        except (FileNotFoundError, ValueError):
            return 0

    def _note(self) -> None:
        if self._newest is not None:
            fresh = self._newest.with_suffix(".new")
            fresh.write_text(f"{self._serial}\n")
            fresh.replace(self._newest)
