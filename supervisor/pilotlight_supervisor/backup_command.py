"""`pilotlight backup FOLDER`: copies a platform while it runs."""

from __future__ import annotations

import pilotlight_core.lean_libraries  # isort: skip # noqa: F401 - before what would import it whole

import argparse
import asyncio
import os
import sqlite3
import sys
import tarfile
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy.exc import SQLAlchemyError

from pilotlight.definitions.version import VERSION
from pilotlight_core.bus import BusError, connect
from pilotlight_core.host.config import BadSetting, parse
from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.backups.backup_manifest import MANIFEST, BackupManifest, BackupPiece, BackupRefused
from pilotlight_gateway.backups.platform_backup import back_up
from pilotlight_gateway.ledger.ledger_errors import LedgerRefused
from pilotlight_supervisor.backup_settings import BackupSettings, describe_piece, describe_size
from pilotlight_supervisor.embedded_bus import EmbeddedError

EXPECTED = (
    BackupRefused, BusError, BadInput, LedgerRefused, EmbeddedError, OSError, tarfile.TarError, sqlite3.Error,
    SQLAlchemyError,
)  # fmt: skip
"""Errors that end it with a line."""
BackupWork = Callable[[BackupSettings, Path], Coroutine[Any, Any, BackupManifest]]


def main(arguments: Sequence[str] | None = None) -> int:
    return run("backup", _copy, _summary, arguments)


def run(
    name: str,
    work: BackupWork,
    summary: Callable[[BackupManifest, Path, BackupSettings], str],
    arguments: Sequence[str] | None,
) -> int:
    """Do it for the folder that is named, and say what was done; the exit code."""
    parser = argparse.ArgumentParser(prog=f"pilotlight {name}", add_help=False, allow_abbrev=False)
    parser.add_argument("folder", type=Path)
    options, rest = parser.parse_known_args(arguments)
    try:
        settings = parse(BackupSettings, f"pilotlight {name}", rest, os.environ)
        manifest = asyncio.run(work(settings, options.folder))
    except BadSetting as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except EXPECTED as error:
        sys.stderr.write(f"error: {error.detail if isinstance(error, BadInput) else error}\n")
        return 1
    if settings.json:
        sys.stdout.write(msgspec.json.encode(manifest).decode() + "\n")
    else:
        sys.stdout.write(summary(manifest, options.folder, settings))
    return 0


def report(piece: BackupPiece) -> None:
    """A piece is done."""
    sys.stderr.write(f"{describe_piece(piece)}\n")


async def _copy(settings: BackupSettings, folder: Path) -> BackupManifest:
    url, parts = settings.bus_url, settings.parts
    async with connect(url, name="backup", ca_file=settings.ca_file, makes_streams=False) as bus:
        return await back_up(bus, parts, folder, release=VERSION, report=report)


def _summary(manifest: BackupManifest, folder: Path, _: BackupSettings) -> str:
    lines = [f"{folder / MANIFEST}: {describe_size(manifest.bytes)}, of what was accepted before {manifest.began_at}"]
    lines += [f"Not in it: {each}." for each in manifest.left_out]
    if manifest.of_kind("keys"):
        lines.append("It has the platform's private keys, and so all secrets: keep it as you keep those, or --no-keys.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
