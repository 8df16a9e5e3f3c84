"""`python -m pilotlight_gateway.nodes.node_issuer FILE`: makes the keys by which gateways let nodes in.

FILE goes to each gateway (`--node-issuer FILE`), and to nobody else: whoever has it may give anybody any right on the
bus. What is printed goes into the configuration of the bus's servers, once and for all nodes.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pilotlight_core.bus.bus_users import AdmissionKeys
from pilotlight_core.bus.nkeys import BadNkey, Nkey, NkeyKind
from pilotlight_core.host.file_permissions import why_open
from pilotlight_core.model.errors import BadInput


class _File(msgspec.Struct, frozen=True, kw_only=True):
    """Seeds."""

    issuer: str
    keeper: str


class NodeIssuer(msgspec.Struct, frozen=True, kw_only=True):
    """The key that lets connections in, and that of the user who closes them."""

    issuer: Nkey
    keeper: Nkey

    @property
    def public(self) -> AdmissionKeys:
        return AdmissionKeys(issuer=self.issuer.public, keeper=self.keeper.public)


def load_issuer(path: Path) -> NodeIssuer:
    """The keys in a file.

    Raises:
        BadInput: there are none, or others may read them.
    """
    try:
        why = why_open(path)
        seeds = msgspec.json.decode(path.read_bytes(), type=_File)
        found = NodeIssuer(
            issuer=Nkey.from_seed(seeds.issuer, NkeyKind.ACCOUNT), keeper=Nkey.from_seed(seeds.keeper, NkeyKind.USER)
        )
    except (OSError, msgspec.DecodeError, BadNkey) as error:
        made = "'python -m pilotlight_gateway.nodes.node_issuer FILE' makes one"
        raise BadInput(f"node_issuer: there are no keys in {path} ({error}); {made}.", field="node_issuer") from None
    if why:
        raise BadInput(f"node_issuer: {why}", field="node_issuer")
    return found


def make_issuer(path: Path) -> NodeIssuer:
    """Make the keys, in a file for its owner alone.

    Raises:
        FileExistsError: there is a file.
    """
    made = NodeIssuer(issuer=Nkey.generate(NkeyKind.ACCOUNT), keeper=Nkey.generate(NkeyKind.USER))
    seeds = _File(issuer=made.issuer.seed, keeper=made.keeper.seed)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(seeds)) + b"\n")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the keys if there are none, and print what servers of the bus need to know."""
    parser = argparse.ArgumentParser(prog="python -m pilotlight_gateway.nodes.node_issuer", description=__doc__)
    parser.add_argument("file", type=Path, help="of the keys, which are made if it is not there")
    path = parser.parse_args(arguments).file
    try:
        keys = (load_issuer(path) if path.exists() else make_issuer(path)).public
    except (BadInput, OSError) as error:
        sys.stderr.write(f"error: {error.detail if isinstance(error, BadInput) else error}\n")
        return 1
    sys.stdout.write(f"--issuer {keys.issuer} --keeper {keys.keeper}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
