"""The platform's keys that this gateway has, and the one of them that signs now.

Without a set of keys it is the one with which the gateway began. With a set it is the first of the keys in its
folder that count now (`KeySet.signing_order`): so a new key signs from its day on, at no gateway's restart.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from pilotlight_core.bus import BusError
from pilotlight_core.host.key_sets import KeySet, SignedKeySet
from pilotlight_core.host.signing import BadSignature, NoKey, Signer, Verifier, key_id, keys_in
from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.spec import Manifest, SignedManifest


class PlatformKeySet(Protocol):
    async def read(self) -> SignedKeySet | None:
        """What the platform has; None: there is none. Raises BusError."""


class ManifestSigner(Protocol):
    """Signs what the platform has accepted."""

    async def sign(self, manifest: Manifest) -> SignedManifest:
        """Raises NoKey: this gateway has none that counts now. Unavailable: the set of keys cannot be read."""
        ...

    async def sign_statement(self, data: bytes) -> StatementSignature:
        """As `sign`, of bytes that say themselves what they are."""
        ...

    async def verify(self, signed: SignedManifest) -> Manifest:
        """What the platform has signed before.

        Raises:
            BadSignature: it has not, or by a key that counts no more. Unavailable: as `sign`.
        """
        ...


class StatementSignature(NamedTuple):
    key_id: str
    signature: bytes


class LoneSigner:
    """A `ManifestSigner` with one key, whatever sets there are."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer

    async def sign(self, manifest: Manifest) -> SignedManifest:
        return self._signer.sign(manifest)

    async def sign_statement(self, data: bytes) -> StatementSignature:
        return StatementSignature(self._signer.key_id, self._signer.sign_data(data))

    async def verify(self, signed: SignedManifest) -> Manifest:
        return Verifier(self._signer.public).verify(signed)


class SigningKeys:
    """The `ManifestSigner` of a gateway, whose private keys are files of `folder`; `began` is the key of its start."""

    def __init__(self, folder: Path, began: str, sets: PlatformKeySet, wall: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._began = began
        self._sets = sets
        self._wall = wall
        self._signers: dict[str, Signer] = {}

    async def sign(self, manifest: Manifest) -> SignedManifest:
        signer = await self._signer()
        return await asyncio.to_thread(signer.sign, manifest)

    async def sign_statement(self, data: bytes) -> StatementSignature:
        signer = await self._signer()
        return StatementSignature(signer.key_id, await asyncio.to_thread(signer.sign_data, data))

    async def verify(self, signed: SignedManifest) -> Manifest:
        present = await self.key_set()
        verifier = await asyncio.to_thread(self._verifier, present, signed.key_id)
        return await asyncio.to_thread(verifier.verify, signed)

    async def key_set(self) -> KeySet | None:
        """The platform's set of keys; None: it has none. Raises Unavailable."""
        try:
            offered = await self._sets.read()
            return None if offered is None else offered.check()
        except BusError as error:
            raise Unavailable(f"The platform's set of keys cannot be read now: {error}.", code="starting") from None
        except BadSignature as error:
            raise NoKey(error.detail) from None

    async def _signer(self) -> Signer:
        present = await self.key_set()
        return await asyncio.to_thread(self._chosen, present)

    def _verifier(self, present: KeySet | None, name: str) -> Verifier:
        if present is not None:
            return verifier_of(present, name, self._wall())
        if (file := keys_in(self._folder).get(name)) is None:
            raise BadSignature(f"The manifest is signed by key {name}, which this gateway does not have.")
        return Verifier.load(self._folder / f"{file}.pub")

    def _chosen(self, present: KeySet | None) -> Signer:
        names = keys_in(self._folder)
        order = [self._began] if present is None else present.signing_order(names, self._wall())
        for name in order:
            if (known := self._signers.get(name)) is not None:
                return known
            if name not in names:
                continue
            signer = Signer.load_or_create(self._folder, create=False, name=names[name])
            if signer.key_id == name:
                return self._signers.setdefault(name, signer)
        if present is None:
            raise NoKey(f"The key in {self._folder} is no longer {self._began}, with which this process began.")
        said = [present.fault(name, self._wall()) for name in names]
        raise NoKey(
            f"No key in {self._folder} counts now, so this gateway signs nothing. {' '.join(said)} An operator adds "
            "one: 'pilotlight keyset new', then 'vouch'."
        )


def verifier_of(present: KeySet, name: str, at: float) -> Verifier:
    """What verifies signatures of a key of the set. Raises BadSignature: it does not count at the unix second `at`."""
    if why := present.fault(name, at):
        raise BadSignature(f"{why} Deploy it again.")
    return Verifier(next(key for key in present.keys if key_id(key) == name))
