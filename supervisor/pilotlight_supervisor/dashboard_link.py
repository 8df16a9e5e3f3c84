"""The link by which whoever started a platform opens its dashboard: it has a code that counts once, not the key."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from urllib.parse import quote

import msgspec

from pilotlight_core.host.http_client import HttpClient, NoHttpClient
from pilotlight_core.model.api.seeing.session_api import NewSession
from pilotlight_supervisor.readiness import http_status

ANSWERS_WITHIN_S, LOOK_S = 10.0, 0.05
ASKED_WITHIN_S = 5.0


class ClientKey(msgspec.Struct):
    """What is read of a client file."""

    api_key: str = ""


async def login_link(dashboard: str, gateway: str, client_file: Path, ca_file: str = "") -> str:
    """Where to log in, with a code if one can be had; "": the dashboard does not answer."""
    if not await _answers(dashboard):
        return ""
    code = await _code(gateway, client_file, ca_file)
    return f"{dashboard}/ui/login?code={quote(code)}" if code else f"{dashboard}/ui/login"


async def _answers(dashboard: str) -> bool:
    try:
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            while await http_status(f"{dashboard}/healthz") != 200:  # noqa: ASYNC110 - nobody tells when it listens
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        return False
    return True


async def _code(gateway: str, client_file: Path, ca_file: str) -> str:
    """The code of a link; "": the key in the client file opens no session."""
    client = HttpClient(connections=1, ca_file=ca_file, timeout=ASKED_WITHIN_S, trust_env=False)
    try:
        key = msgspec.json.decode(await asyncio.to_thread(client_file.read_bytes), type=ClientKey).api_key
        http = await client.get()
        import httpx  # `get` has loaded it

        logging.getLogger("httpx").setLevel(logging.WARNING)  # or it says the request beside the link

        try:
            answer = await http.post(
                f"{gateway}/v1/sessions", json={"link": True}, headers={"authorization": f"Bearer {key}"}
            )
        except httpx.HTTPError:
            return ""
        return msgspec.json.decode(answer.content, type=NewSession).code if answer.status_code == 201 else ""
    except (OSError, NoHttpClient, msgspec.DecodeError):
        return ""
    finally:
        await client.aclose()
