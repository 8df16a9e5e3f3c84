"""`pilotlight keyset new|vouch`: makes a gateway's further key, and the operator's signed set of keys."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from pilotlight_core.host.key_sets import KeySet, SignedKeySet
from pilotlight_core.host.signing import PRIVATE, BadSignature, NoKey, Signer, Verifier, key_id
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import token
from pilotlight_core.model.supply.key_terms import ALWAYS, KeyTerms, day_of
from pilotlight_gateway.operator_key import KEY_SET, OPERATOR_KEY, load_key_set, vouch_for

LATER = re.compile(r"\+(\d{1,5})([hd])")
UNITS = {"h": 3_600, "d": 86_400}
Terms = dict[bytes, KeyTerms]


def add_key(folder: Path) -> tuple[str, Path]:
    """Make a further private key in a gateway's folder; its id, and the file of its public half.

    Raises:
        NoKey.
    """
    name = f"{PRIVATE}.{token(8)}"
    signer = Signer.load_or_create(folder, name=name)
    return signer.key_id, folder / f"{name}.pub"


def next_terms(present: KeySet | None, options: argparse.Namespace, at: float) -> Terms:
    """The terms of all keys of the next set: those of the present one, with what is asked for.

    Raises:
        BadInput: an id is of no key. NoKey: a file has none.
    """
    known: Terms = {}
    if present is not None:
        known = dict.fromkeys(present.keys, ALWAYS) | {each.key: each.terms for each in present.terms}
    begins = instant(options.not_before, at, "--not-before") if options.not_before else 0.0
    for path in _files(options.key):
        for verifier in Verifier.load_all(path):
            if known.get(verifier.public, ALWAYS).revoked_at:
                raise BadInput(f"The key {verifier.key_id} was revoked: make another one.")
            known[verifier.public] = KeyTerms(not_before=begins or (0.0 if present is None else at))
    ends = instant(options.after, at, "--after")
    for name in options.retire:
        key = _named(known, name)
        known[key] = msgspec.structs.replace(known[key], not_after=ends)
    for name in options.revoke:
        key = _named(known, name)
        known[key] = msgspec.structs.replace(known[key], revoked_at=at, reason=options.reason)
    if all(terms.fault(at) for terms in known.values()):
        raise BadInput("No key of that set counts now, so that no gateway could sign: keep one until the next counts.")
    return known


def _files(paths: Iterable[Path]) -> list[Path]:
    """The files named, and of folders the public keys in them."""
    return [each for path in paths for each in (sorted(path.glob(f"{PRIVATE}*.pub")) if path.is_dir() else [path])]


def _named(known: Terms, name: str) -> bytes:
    found = [key for key in known if len(name) >= 8 and key_id(key).startswith(name)]
    if len(found) != 1:
        raise BadInput(f"{name!r} is no key of the set; there are {', '.join(map(key_id, known)) or 'none'}.")
    return found[0]


def instant(text: str, at: float, option: str) -> float:
    """`+14d`, `+6h`, or a day or an instant as ISO 8601 has it, in UTC. Raises BadInput."""
    if found := LATER.fullmatch(text):
        return at + int(found[1]) * UNITS[found[2]]
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"{option} {text!r}: expected +14d, +6h, or a day such as 2026-12-01.") from None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


def _vouch(options: argparse.Namespace, at: float) -> tuple[dict[str, Any], str]:
    folder: Path = options.folder.expanduser()
    path = folder / KEY_SET
    before = load_key_set(str(path)) if path.is_file() else None
    present = None if before is None else before.check()
    terms = next_terms(present, options, at)
    serial = max(int(at), 0 if present is None else present.serial + 1)
    signed = vouch_for(folder, terms, serial)
    return _set_info(signed, path), _text(signed, path, at)


def _set_info(signed: SignedKeySet, path: Path) -> dict[str, Any]:
    read = signed.read()
    keys = [
        {"id": name, **msgspec.to_builtins(read.terms_of(name) or ALWAYS)}
        for name in dict.fromkeys((*read.names(), *(key_id(each.key) for each in read.terms)))
    ]
    return {"file": str(path), "serial": read.serial, "operator": key_id(signed.root), "keys": keys}


def _text(signed: SignedKeySet, path: Path, at: float) -> str:
    read = signed.read()
    lines = [f"{path}: the set of keys of {day_of(read.serial)}"]
    for name in dict.fromkeys((*read.names(), *(key_id(each.key) for each in read.terms))):
        terms = read.terms_of(name) or ALWAYS
        until = f"counts until {day_of(terms.not_after)}" if terms.not_after else "counts"
        lines.append(f"  {name} {terms.fault(at) or until}")
    lines.append(f"{path.parent / OPERATOR_KEY}.pub: for agents (--trusted-keys)")
    lines.append(f"Next: pilotlight keyset publish {path.parent}")
    return "\n".join(lines) + "\n"


def _new(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    name, public = add_key(options.folder.expanduser())
    told = {"id": name, "public": str(public)}
    return told, f"{public}: the public key {name}. Next: pilotlight keyset vouch OPERATOR --key {public}\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="pilotlight keyset", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    new = actions.add_parser("new", help="make a further key for a gateway")
    vouch = actions.add_parser("vouch", help="sign the set of keys that count")
    for action in (new, vouch):
        action.add_argument("folder", type=Path)
        action.add_argument("--json", action="store_true")
    vouch.add_argument("--key", type=Path, action="append", default=[])
    vouch.add_argument("--not-before", default="")
    vouch.add_argument("--retire", action="append", default=[])
    vouch.add_argument("--after", default="+14d")
    vouch.add_argument("--revoke", action="append", default=[])
    vouch.add_argument("--reason", default="")
    options = parser.parse_args(arguments)
    try:
        told, text = _new(options) if options.action == "new" else _vouch(options, time.time())
    except (NoKey, BadSignature, BadInput) as error:
        sys.stderr.write(f"error: {error.detail}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    sys.stdout.write(msgspec.json.encode(told).decode() + "\n" if options.json else text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
