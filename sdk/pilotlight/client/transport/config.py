"""The platform's address and key, from the environment, a login or the file that `pilotlight up` writes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from pilotlight.client.login.saved_login import LOGIN_FILE, load_login
from pilotlight.definitions.errors import Misuse, NotConfigured

URL = "PILOTLIGHT_URL"
API_KEY = "PILOTLIGHT_API_KEY"
CA_FILE = "PILOTLIGHT_CA_FILE"
"""Of an https:// platform: PEM of the authorities that count; without it those that Python knows."""
HOME = "PILOTLIGHT_HOME"
CLIENT_FILE = "client.json"
IN_CONTAINER = "PL_APP"
"""Set in containers, which have no network."""


class ClientConfig(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    api_key: str
    """"": there is none, or `login_file` is in its place."""
    ca_file: str = ""
    login_file: str = ""
    """Of the login whose token is sent in place of a key."""
    login: str = ""
    """Its id."""

    @property
    def is_loopback(self) -> bool:
        """Whether the platform is on this machine, behind no proxy."""
        return urlsplit(self.url).hostname in ("127.0.0.1", "localhost", "::1")


def home(environ: Mapping[str, str]) -> Path:
    """Return the folder of the client's file: $PILOTLIGHT_HOME, or ~/.pilotlight."""
    return Path(environ[HOME]) if environ.get(HOME) else Path.home() / ".pilotlight"


def load_config(environ: Mapping[str, str] = os.environ) -> ClientConfig:
    """Return the configured platform, and the key for it: the environment's, else a login's, else the file's.

    Raises:
        NotConfigured: if there is none, or in a container.
        Misuse: if the file or the address cannot be read.
    """
    check_place(environ)
    file = home(environ) / CLIENT_FILE
    known, login_file = _read(file), home(environ) / LOGIN_FILE
    login = None if environ.get(API_KEY) else load_login(login_file)
    url = environ.get(URL) or (login.url if login is not None else known.get("url"))
    if login is not None and url is not None and url.rstrip("/") == login.url:
        ca_file = environ.get(CA_FILE) or login.ca_file
        return ClientConfig(url=login.url, api_key="", ca_file=ca_file, login_file=str(login_file), login=login.id)
    key = environ.get(API_KEY) or known.get("api_key")
    if not url or not key:
        missing = " and ".join(name for name, value in ((URL, url), (API_KEY, key)) if not value)
        raise NotConfigured(f"{missing} not set, and not in {file}.")
    # The file's authority is that of the file's platform.
    ca_file = environ.get(CA_FILE) or (known.get("ca_file", "") if url == known.get("url") else "")
    return make_config(url, key, ca_file)


def configured_platform(url: str = "", environ: Mapping[str, str] = os.environ) -> ClientConfig:
    """Return the platform at `url`, or the configured one, for who has no key yet.

    Raises:
        NotConfigured: if there is none.
        Misuse: if the address is not one, or a file cannot be read.
    """
    check_place(environ)
    known, login = _read(home(environ) / CLIENT_FILE), load_login(home(environ) / LOGIN_FILE)
    found = url or environ.get(URL) or (login.url if login is not None else known.get("url"))
    if not found:
        raise NotConfigured("No platform is named: pilotlight login https://….")
    ca_files = {known.get("url"): known.get("ca_file", "")} | ({login.url: login.ca_file} if login is not None else {})
    return make_config(found, "", environ.get(CA_FILE) or ca_files.get(found.rstrip("/"), ""))


def check_place(environ: Mapping[str, str] = os.environ) -> None:
    """Raise NotConfigured in a container, which has no key of a platform."""
    if IN_CONTAINER in environ:
        raise NotConfigured(
            "A container has no key of a platform, and no way to one. Functions call others by .remote(), .remote.aio()"
            " and .map(); all else is done from outside."
        )


def make_config(url: str, api_key: str, ca_file: str = "") -> ClientConfig:
    """Return a checked configuration.

    Raises:
        Misuse: if the address is not one.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Misuse(f"{URL}={url!r} is not an address: expected http(s)://host:port.", field="url")
    return ClientConfig(url=url.rstrip("/"), api_key=api_key.strip(), ca_file=ca_file)


def _read(file: Path) -> dict[str, str]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, str])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        raise Misuse(f"{file} cannot be read: {error}. Remove it, or write it anew with 'pilotlight up'.") from error
