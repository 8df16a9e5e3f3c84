"""Whose manifests this node runs: those of the keys that it was given, and of those that such a key vouches for."""

from __future__ import annotations

import asyncio
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
    """

    def __init__(self, source: Path, sets: KeySetReader | None = None, newest: Path | None = None) -> None:
        self._source = source
        self._sets = sets
        self._newest = newest
        self._given: tuple[Verifier, ...] = ()
        self._serial = 0

    async def verify(self, signed: SignedManifest) -> Manifest:
        """As `ManifestVerifier` has it."""
        if (verifier := self._named(signed.key_id)) is None:
            self._given = await asyncio.to_thread(Verifier.load_all, self._source)
            verifier = self._named(signed.key_id) or await self._vouched(signed.key_id)
        return verifier.verify(signed)

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

    async def _vouched(self, name: str) -> Verifier:
        """Raises BadSignature: for this key nobody vouches."""
        try:
            offered = None if self._sets is None else await self._sets.read()
        except BusError as error:
            raise ConnectionError(f"the platform's set of keys cannot be read: {error}") from error
        keys = () if offered is None else (await self._believed(offered)).keys
        for public in keys:
            if key_id(public) == name:
                return Verifier(public)
        raise BadSignature(
            f"The manifest is signed by key {name}, which is not trusted here: neither was it given to this agent "
            "(--trusted-keys), nor is it in a set of the platform's that a given key vouches for."
        )

    async def _believed(self, offered: SignedKeySet) -> KeySet:
        """Raises BadSignature: no given key has signed it, or it is older than one that was seen."""
        if all(each.public != offered.root for each in self._given):
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
