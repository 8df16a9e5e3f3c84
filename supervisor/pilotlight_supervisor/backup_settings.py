"""Where the platform is that is copied, or comes back: a state folder, or addresses of its parts on several hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import unquote, urlsplit

import msgspec

from pilotlight_core.bus import bus_users
from pilotlight_gateway.backups.backup_manifest import BackupPiece, BackupRefused
from pilotlight_gateway.backups.platform_backup import PlatformParts
from pilotlight_supervisor.embedded_bus import folder_of, user_url

IN_BUCKET = "the blobs, which are in {url}: copy the bucket by its own means, such as versions or replication"
NO_KEYS = "the keys: they are kept elsewhere"
UNITS = ("B", "kB", "MB", "GB", "TB")
THOUSAND = 1_000


class BackupSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Of `pilotlight backup` and `pilotlight restore`."""

    state_dir: Annotated[Path, msgspec.Meta(description="where this machine keeps everything")] = Path(".pilotlight")
    nats_url: Annotated[
        str, msgspec.Meta(description="the bus, with the password of its user operator; empty: below --state-dir")
    ] = ""
    ca_file: Annotated[str, msgspec.Meta(description="PEM: the authorities of the certificate of the bus")] = ""
    ledger_url: Annotated[str, msgspec.Meta(description="postgresql://…; empty: SQLite below --state-dir")] = ""
    blob_url: Annotated[str, msgspec.Meta(description="file:///… or s3://bucket/prefix; empty: below --state-dir")] = ""
    keys: Annotated[bool, msgspec.Meta(description="the keys below --state-dir too")] = True
    replicas: Annotated[
        int, msgspec.Meta(ge=0, le=5, description="servers that keep each stream; 0: as many as when it was copied")
    ] = 0
    keep_ledger: Annotated[
        bool, msgspec.Meta(description="the ledger was not lost: leave it, and fold again what the bus has")
    ] = False
    check: Annotated[bool, msgspec.Meta(description="only read the backup, and change nothing")] = False
    json: Annotated[bool, msgspec.Meta(description="print JSON")] = False

    @property
    def bus_folder(self) -> Path:
        return self.state_dir / "nats"

    @property
    def bus_url(self) -> str:
        """Of the bus.

        Raises:
            BackupRefused: there is none in the state folder.
        """
        if self.nats_url:
            return self.nats_url
        try:
            servers = int((self.bus_folder / "servers").read_text())
            ports = [int((folder_of(self.bus_folder, number) / "port").read_text()) for number in range(servers)]
        except (OSError, ValueError):
            raise BackupRefused(
                f"{self.state_dir} is no platform's folder: name it with --state-dir, or the bus of several hosts in "
                "PILOTLIGHT_NATS_URL."
            ) from None
        return user_url(self.bus_folder, ports, bus_users.OPERATOR)

    @property
    def parts(self) -> PlatformParts:
        """Where the other parts are.

        Raises:
            BackupRefused: the blob store's address is none.
        """
        state = self.state_dir.resolve()
        blobs, elsewhere = self._blobs(state)
        return PlatformParts(
            ledger_url=self.ledger_url or f"sqlite:///{state / 'ledger.sqlite'}",
            blobs=blobs,
            keys=state / "keys" if self.keys else None,
            elsewhere=(*elsewhere, *(() if self.keys else (NO_KEYS,))),
        )

    def _blobs(self, state: Path) -> tuple[Path | None, tuple[str, ...]]:
        if not self.blob_url:
            return state / "blobs", ()
        address = urlsplit(self.blob_url)
        if address.scheme == "file" and address.path.startswith("/") and not address.netloc:
            return Path(unquote(address.path)), ()
        if address.scheme == "s3" and address.netloc:
            return None, (IN_BUCKET.format(url=f"s3://{address.netloc}{address.path}"),)
        raise BackupRefused(f"--blob-url: {self.blob_url!r}: expected file:///folder or s3://bucket/prefix.")


def describe_piece(piece: BackupPiece) -> str:
    """A line about it."""
    unit = {"stream": "messages", "blobs": "files", "keys": "files"}.get(piece.kind, "")
    count = f"{piece.entries} {unit}" if unit else piece.name
    name = piece.name if piece.kind == "stream" else piece.kind
    return f"{name:<16} {count:>16} {describe_size(piece.bytes):>10}"


def describe_size(size: float) -> str:
    """Bytes for people."""
    unit = 0
    while size >= THOUSAND and unit < len(UNITS) - 1:
        size, unit = size / THOUSAND, unit + 1
    return f"{size:.0f} {UNITS[unit]}" if not unit else f"{size:.1f} {UNITS[unit]}"
