"""`pilotlight login`."""

from __future__ import annotations

import asyncio
import os
import time
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import anyio
import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import note, print_json, print_text
from pilotlight.cli.session import ask
from pilotlight.client.login.browser_flow import log_in_by_browser
from pilotlight.client.login.device_flow import DeviceCode, begin_device_flow, poll_device_flow
from pilotlight.client.login.issued_tokens import login_of
from pilotlight.client.login.issuer_client import ISSUER_CA_FILE, IssuerClient, LoginFailed
from pilotlight.client.login.login_keeper import locked_login
from pilotlight.client.login.saved_login import LOGIN_FILE, SavedLogin, absolute_file, save_login
from pilotlight.client.resources.issuers import IssuersClient
from pilotlight.client.resources.platform import PlatformClient
from pilotlight.client.transport.config import API_KEY, ClientConfig, configured_platform, home, make_config
from pilotlight.client.transport.platform_connection import PlatformConnection
from pilotlight_core.model.api.issuer_api import CallerInfo, LoginInfo

app = command_app()


@app.command()
def login(
    url: Annotated[str, typer.Argument(help="the platform's address; default: the configured one")] = "",
    issuer: Annotated[str, typer.Option(help="at which issuer, if the platform knows several")] = "",
    browser: Annotated[bool, typer.Option("--browser", help="in this machine's browser, without a code")] = False,
    issuer_ca_file: Annotated[
        str,
        typer.Option(
            envvar=ISSUER_CA_FILE, help="PEM: authorities of the issuer's certificate beside those that Python knows"
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Log in, so that no API key is needed.

    By default a code is shown, which is typed on any device with a browser; --browser needs one on this machine.

    \b
    pilotlight login https://gpu.example.com
    pilotlight login --browser
    """
    platform = configured_platform(url)
    saved = ask(_log_in(platform, issuer, absolute_file(issuer_ca_file), browser=browser))
    caller = ask(_describe_caller(platform, saved))  # before it is saved: one that gives no access is in the way
    ask(_save(home(os.environ) / LOGIN_FILE, saved))
    if os.environ.get(API_KEY):
        note(f"{API_KEY} is set, and goes before the login: unset it.")
    if as_json:
        print_json(caller)
    else:
        print_text(f"{caller.subject or caller.key} of {caller.tenant} may {', '.join(caller.scopes)} at {saved.url}.")


async def _log_in(platform: ClientConfig, name: str, issuer_ca_file: str, *, browser: bool) -> SavedLogin:
    connection = PlatformConnection(platform)
    try:
        info = choose_login(await IssuersClient(PlatformClient(connection)).list_logins(), name, platform.url)
    finally:
        await connection.aclose()
    async with IssuerClient(issuer_ca_file) as asked:
        endpoints = await asked.find_endpoints(info.url)
        if browser:
            answer = await log_in_by_browser(asked, endpoints, info, _open_page)
        else:
            code = await begin_device_flow(asked, endpoints, info)
            _show_code(code)
            answer = await poll_device_flow(asked, endpoints, info, code, anyio.sleep)
    return login_of(
        answer, info, endpoints, url=platform.url, ca_file=platform.ca_file, issuer_ca_file=issuer_ca_file,
        at=time.time(),
    )  # fmt: skip


async def _save(file: Path, login: SavedLogin) -> None:
    async with locked_login(file):  # a renewal of the login before this one would be written over it
        save_login(file, login)


async def _describe_caller(platform: ClientConfig, login: SavedLogin) -> CallerInfo:
    connection = PlatformConnection(make_config(platform.url, login.token, platform.ca_file))
    try:
        return await IssuersClient(PlatformClient(connection)).describe_caller()
    finally:
        await connection.aclose()


def choose_login(logins: tuple[LoginInfo, ...], name: str, url: str) -> LoginInfo:
    """Return the login of that name, or the only one.

    Raises:
        LoginFailed: there is none, or a choice.
    """
    names = ", ".join(login.name for login in logins)
    if not logins:
        raise LoginFailed(f"Nobody logs in at {url}: its operator has put no issuer on record for people.")
    if name:
        found = [login for login in logins if login.name == name]
        if not found:
            raise LoginFailed(f"{url} knows no issuer {name!r}; it knows {names}.")
        return found[0]
    if len(logins) > 1:
        raise LoginFailed(f"{url} knows several issuers: choose one with --issuer, of {names}.")
    return logins[0]


def _show_code(code: DeviceCode) -> None:
    note(f"Open {code.url} on any device, and enter {code.user_code}")
    if code.whole_url:
        note(f"(or {code.whole_url}, which has the code {code.user_code} in it: compare).")


async def _open_page(start: str, page: str) -> None:
    note(f"Log in on the page that opens, or open it yourself:\n{page}")
    with suppress(webbrowser.Error):
        await asyncio.to_thread(webbrowser.open, start)  # one in the terminal is open until its user leaves it
