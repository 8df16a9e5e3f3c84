"""Platform keys by URL."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from pilotlight_core.host.foundations import WrongFoundation
from pilotlight_gateway.secrets.key_files import KEY_FILE, FilePlatformKey
from pilotlight_gateway.secrets.platform_keys import PlatformKey


class PlatformKeyPair(NamedTuple):
    """A process's key, and the one that it takes over from."""

    present: PlatformKey
    former: PlatformKey | None = None


def open_key_pair(secrets_key: str, former_secrets_key: str, folder: Path) -> PlatformKeyPair:
    """The keys at two URLs; "" for the former: there is none.

    Raises:
        WrongFoundation: one of them names none; the message has its flag.
    """
    return PlatformKeyPair(
        _named("--secrets-key", secrets_key, folder),
        _named("--former-secrets-key", former_secrets_key, folder) if former_secrets_key else None,
    )


def open_platform_key(url: str, folder: Path) -> PlatformKey:
    """The key at `file:///path` or `aws-kms://alias/NAME?region=…&endpoint=…` (or a key's id or ARN); "": a file in
    `folder`.

    Raises:
        ValueError: the URL is neither, or boto3 is missing.
    """
    if not url:
        return FilePlatformKey(folder / KEY_FILE)
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.path.startswith("/") and not parts.netloc:
        return FilePlatformKey(Path(unquote(parts.path)))
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    key = unquote(url.removeprefix("aws-kms://").partition("?")[0])
    if parts.scheme == "aws-kms" and key and options.keys() <= {"endpoint", "region"}:
        from pilotlight_gateway.secrets.kms_keys import KmsPlatformKey

        return KmsPlatformKey(key, endpoint=options.get("endpoint"), region=options.get("region"))
    raise ValueError(f"{url!r} is no key of secrets: expected file:///path or aws-kms://alias/NAME?region=…")


def _named(flag: str, url: str, folder: Path) -> PlatformKey:
    try:
        return open_platform_key(url, folder)
    except ValueError as error:
        raise WrongFoundation(f"{flag}: {error}") from None
