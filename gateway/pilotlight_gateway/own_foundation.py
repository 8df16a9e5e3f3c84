"""What a gateway has in common with its platform, read by a process of its own.

Reading the key and the ledger takes libraries that are a third of an idle gateway's memory, and that it may never need
again: it signs when somebody deploys, and reads the ledger when somebody asks what is used.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import json

from pilotlight_core.host.key_sets import SignedKeySet
from pilotlight_core.host.signing import PUBLIC, BadSignature, NoKey, Signer, keys_in
from pilotlight_gateway.ledger.ledger_errors import LedgerRefused
from pilotlight_gateway.ledger.ledger_head import identity_at_head

MOST_REPLY = 64 * 1024
COMMAND = (sys.executable, "-P", "-m", "pilotlight_gateway.own_foundation")
NOT_VOUCHED = (
    "Nobody vouches for this gateway's key {key}: sign a set of keys that has {path} too "
    "(`python -m pilotlight_gateway.operator_key`), and name its file with --key-set."
)
LONGEST_S = 1_800.0
"""To upgrade a large ledger takes minutes, and another gateway may do it first."""


class FoundationAsk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to open; on the reader's standard input, since the URL may hold a password."""

    database_url: str
    keys_dir: str
    may_create_key: bool
    key_set: SignedKeySet | None = None
    """Must be signed as it says, and have a key that counts."""
    at: float = 0.0
    """Unix seconds."""


class OwnFoundation(msgspec.Struct, frozen=True, kw_only=True):
    """The names of the key and of the ledger, or why there is none."""

    manifest_key: str = ""
    ledger: str = ""
    no_key: str = ""
    refused: str = ""


async def own_foundation(ask: FoundationAsk) -> OwnFoundation:
    """Open the ledger, which upgrades its tables, and the key, which is made where it may be.

    Raises:
        NoKey: there is none, and none may be made. LedgerRefused: see `Ledger`, or the reader has died.
    """
    import asyncio  # as every gateway has; the process that it starts would load it for nothing

    child = await asyncio.create_subprocess_exec(
        *COMMAND,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=MOST_REPLY,
    )
    try:
        async with asyncio.timeout(LONGEST_S):
            answer, _ = await child.communicate(json.encode(ask))
    except TimeoutError:
        raise LedgerRefused(f"the ledger has not answered within {LONGEST_S:g} s") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode:
        raise LedgerRefused(f"what reads the ledger and the key has ended with {child.returncode}: its error is above")
    found = json.decode(answer, type=OwnFoundation)
    if found.refused:
        raise LedgerRefused(found.refused)
    if found.no_key:
        raise NoKey(found.no_key)
    return found


def read(ask: FoundationAsk) -> OwnFoundation:
    """As `own_foundation`, in this process, with errors as text."""
    try:
        name = identity_at_head(ask.database_url) or _opened(ask.database_url)
    except LedgerRefused as error:
        return OwnFoundation(refused=str(error))
    try:
        folder = Path(ask.keys_dir)
        signer = Signer.load_or_create(folder, create=ask.may_create_key)
        if ask.key_set is None:
            return OwnFoundation(ledger=name, manifest_key=signer.key_id)
        # After a rotation it is a later one, beside that of the first start.
        usable = ask.key_set.check().signing_order(keys_in(folder), ask.at)
        if not usable:
            return OwnFoundation(no_key=NOT_VOUCHED.format(key=signer.key_id, path=folder / PUBLIC))
        return OwnFoundation(ledger=name, manifest_key=usable[0])
    except (NoKey, BadSignature) as error:
        return OwnFoundation(no_key=error.detail)
    except OSError as error:
        return OwnFoundation(no_key=f"The key to sign manifests with cannot be read: {error}.")


def _opened(database_url: str) -> str:
    """The name of a ledger that is opened, and so made or upgraded. Raises LedgerRefused."""
    import pilotlight_core.lean_libraries  # isort: skip # noqa: F401 - before what would import it whole

    from sqlalchemy.exc import SQLAlchemyError

    from pilotlight_core.model.price_book import load_prices
    from pilotlight_gateway.ledger.ledger_store import Ledger

    try:
        ledger = Ledger(database_url, load_prices())
        try:
            return ledger.identity()
        finally:
            ledger.close()
    except (SQLAlchemyError, OSError) as error:
        raise LedgerRefused(f"the ledger cannot be opened: {str(error).splitlines()[0]}") from None


def main(take: Callable[[], bytes] = sys.stdin.buffer.read) -> None:
    """Answer the ask on the standard input with one on the standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the gateway, which ends this one
    sys.stdout.buffer.write(json.encode(read(json.decode(take(), type=FoundationAsk))))


if __name__ == "__main__":
    main()
