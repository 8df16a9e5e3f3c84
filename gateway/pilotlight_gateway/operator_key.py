"""`python -m pilotlight_gateway.operator_key FOLDER KEY...`: the operator vouches for the keys of gateways.

The operator's key is made in FOLDER if there is none, which no process of the platform ever reads: keep it elsewhere.
Each KEY is the `manifest_ed25519.pub` of a gateway, or a folder with it. What comes out is FOLDER/key-set.json, for
`--key-set` of any gateway, and FOLDER/operator_ed25519.pub, for `--trusted-keys` of each agent.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from pilotlight_core.host.key_sets import MOST_KEYS, SignedKeySet, sign_keys
from pilotlight_core.host.signing import BadSignature, NoKey, Signer, Verifier
from pilotlight_core.model.supply.key_terms import ALWAYS, KeyTerms

OPERATOR_KEY = "operator_ed25519"
KEY_SET = "key-set.json"


def load_key_set(path: str) -> SignedKeySet | None:
    """The set in a file; None: `path` is empty.

    Raises:
        BadSignature: there is none.
    """
    if not path:
        return None
    try:
        return msgspec.json.decode(Path(path).expanduser().read_bytes(), type=SignedKeySet)
    except (OSError, msgspec.DecodeError) as error:
        raise BadSignature(f"--key-set: there is no signed set of keys in {path}: {error}.") from None


def vouch(folder: Path, keys: Iterable[Path], at: float) -> SignedKeySet:
    """Sign the set of these keys with that in `folder`, and write it there.

    Raises:
        NoKey: one of them is none, or they are too many.
    """
    public = {verifier.public for path in keys for verifier in Verifier.load_all(path)}
    return vouch_for(folder, dict.fromkeys(public, ALWAYS), int(at))


def vouch_for(folder: Path, terms: Mapping[bytes, KeyTerms], serial: int) -> SignedKeySet:
    """Sign a set of keys with their terms, and write it. Raises NoKey."""
    if len(terms) > MOST_KEYS:
        raise NoKey(f"A platform has {MOST_KEYS} keys at most, not {len(terms)}.")
    signed = sign_keys(Signer.load_or_create(folder, name=OPERATOR_KEY), terms, serial, terms)
    fresh = folder / f".{KEY_SET}"
    fresh.write_bytes(msgspec.json.format(msgspec.json.encode(signed)) + b"\n")
    fresh.replace(folder / KEY_SET)
    return signed


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pilotlight_gateway.operator_key", description=__doc__)
    parser.add_argument("folder", type=Path, help="of the operator's key, which is made if it is not there")
    parser.add_argument("keys", type=Path, nargs="+", help="public keys of gateways: all that shall count from now on")
    options = parser.parse_args(arguments)
    try:
        signed = vouch(options.folder, options.keys, time.time())
    except NoKey as error:
        sys.stderr.write(f"error: {error.detail}\n")
        return 1
    names = ", ".join(signed.read().names())
    sys.stdout.write(f"{options.folder / KEY_SET}: {names}\n{options.folder / OPERATOR_KEY}.pub: for agents\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
