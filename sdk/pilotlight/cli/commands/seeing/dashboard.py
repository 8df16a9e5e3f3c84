"""`pilotlight dashboard`."""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from typing import Annotated
from urllib.parse import quote, urlsplit

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.local_times import show_instant
from pilotlight.cli.output import note, print_json, print_text
from pilotlight.cli.session import ask, client
from pilotlight_core.model.api.seeing.session_api import NewSession

app = command_app()


@app.command()
def dashboard(
    url: Annotated[
        str,
        typer.Option(envvar="PILOTLIGHT_DASHBOARD_URL", help="the dashboard's address; default: as the platform says"),
    ] = "",
    open_it: Annotated[bool, typer.Option("--open", help="open it in this machine's browser")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Print a link into the dashboard. It logs in once, within a quarter of an hour, with what your API key may.

    \b
    pilotlight dashboard
    pilotlight dashboard --open
    pilotlight dashboard --url https://dashboard.example.com --json
    """
    if url and not is_address(url):
        raise typer.BadParameter("expected an address such as https://dashboard.example.com", param_hint="--url")
    made = ask(client().tenancy.make_link())
    link = link_of(made, url)
    if as_json:
        print_json({"url": link, "code": made.code, "tenant": made.tenant, "expires_at": made.expires_at})
    elif link and not open_it:
        print_text(link)
    if not link:
        note("This platform does not say where its dashboard is: name it with --url, or give gateways --dashboard-url.")
        raise typer.Exit(1)
    if open_it and not _is_opened(link):
        if not as_json:
            print_text(link)
        note("No browser could be opened here: open the link by hand.")
        raise typer.Exit(1)
    note(f"It opens the dashboard of {made.tenant} once, until {show_instant(made.expires_at)}.")


def link_of(made: NewSession, url: str) -> str:
    """The link, at `url` if that is given; "": nobody has said where."""
    return f"{url.rstrip('/')}/ui/login?code={quote(made.code)}" if url else made.url


def is_address(text: str) -> bool:
    """Whether it is one that a browser opens, and not a file or a script."""
    parts = urlsplit(text)
    return parts.scheme in ("http", "https") and bool(parts.netloc) and not (parts.query or parts.fragment)


def _is_opened(link: str) -> bool:
    with suppress(webbrowser.Error):
        return webbrowser.open(link)
    return False
