"""`pilotlight keyset`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import note, print_json, print_text
from pilotlight.cli.platform_commands import run_command
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight.definitions.errors import OptionError

app = command_app(no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Operator = Annotated[Path, typer.Argument(help="folder of the operator's key, which no process of the platform reads")]
SHOWN = 20


@app.callback()
def group() -> None:
    """The platform's own keys, for operators."""


@app.command(name="list")
def list_keys(as_json: Json = False) -> None:
    """List the platform's keys, and when each counts.

    \b
    pilotlight keyset list
    """
    found = ask(client().supply.get_signing_keys())
    if as_json:
        print_json(found)
        return
    _show(found)


@app.command()
def new(
    keys: Annotated[Path, typer.Argument(help="folder of a gateway's keys: --keys, or STATE/keys")],
    as_json: Json = False,
) -> None:
    """Make a further key for a gateway.

    On its host. It signs once a published set has it.

    \b
    pilotlight keyset new ~/.pilotlight/keys
    """
    raise typer.Exit(run_command("keyset", ["new", *_json(as_json), "--", str(keys)], as_json=as_json))


@app.command()
def vouch(
    folder: Operator,
    key: Annotated[
        list[Path] | None, typer.Option(help="a gateway's public key, or a folder of them; repeat it")
    ] = None,
    not_before: Annotated[
        str, typer.Option(help="from when on those keys count and sign: 2026-12-01, or +2d; default: now")
    ] = "",
    retire: Annotated[list[str] | None, typer.Option(help="ID of a key that is to expire")] = None,
    after: Annotated[str, typer.Option(help="when retired keys expire: 2026-12-15, or +14d")] = "+14d",
    revoke: Annotated[list[str] | None, typer.Option(help="ID of a key that counts no more, from now on")] = None,
    reason: Annotated[str, typer.Option(help="why it is revoked")] = "",
    as_json: Json = False,
) -> None:
    """Sign the set of keys that count.

    From the set that is in the folder; then publish it.

    The operator's key is made if there is none; agents are given its public half (--trusted-keys). A retired key
    counts until it expires: until then sign kept versions again by the new one ('resign'). What a revoked key has
    signed is refused at the next start of a container.

    \b
    pilotlight keyset vouch ~/operator --key gw-1.pub --retire 5f0c21aa3b9d7e10 --after +14d
    pilotlight keyset vouch ~/operator --revoke 5f0c21aa3b9d7e10 --reason "the disk was stolen"
    """
    words = [
        *(f"--key={each}" for each in key or ()), f"--not-before={not_before}",
        *(f"--retire={each}" for each in retire or ()), f"--after={after}",
        *(f"--revoke={each}" for each in revoke or ()), f"--reason={reason}", *_json(as_json),
    ]  # fmt: skip
    raise typer.Exit(run_command("keyset", ["vouch", *words, "--", str(folder)], as_json=as_json))


@app.command()
def publish(
    file: Annotated[Path, typer.Argument(help="key-set.json of the operator's folder, or that folder")],
    as_json: Json = False,
) -> None:
    """Publish a set of keys.

    Gateways sign, and agents believe, by it at once, without a restart.

    \b
    pilotlight keyset publish ~/operator
    """
    path = file.expanduser() / "key-set.json" if file.expanduser().is_dir() else file.expanduser()
    try:
        signed = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise OptionError(f"{path} cannot be read: {error.strerror}.", field="file") from None
    except msgspec.DecodeError as error:
        raise OptionError(f"{path} is no set of keys: {error}.", field="file") from None
    found = ask(client().supply.publish_signing_keys(signed))
    if as_json:
        print_json(found)
        return
    _show(found)
    note("next: pilotlight keyset resign")


@app.command()
def resign(as_json: Json = False) -> None:
    """Sign kept versions again by the present key.

    Broken off and run again, it goes on.

    \b
    pilotlight keyset resign
    """
    after, looked_at, signed, refused = "", 0, 0, list[Any]()
    while True:
        done = ask(client().supply.resign(after))
        looked_at, signed = looked_at + done.looked_at, signed + done.signed
        refused += done.refused
        after = done.next
        if not after:
            break
        note(f"{looked_at} versions looked at, {signed} signed again …")
    if as_json:
        print_json({"looked_at": looked_at, "signed": signed, "refused": msgspec.to_builtins(refused)})
    else:
        print_text(f"{looked_at} versions looked at, {signed} signed again, {len(refused)} not.")
        for each in refused[:SHOWN]:
            print_text(f"  {each.tenant}: {each.ref}: {each.why}")
    if refused:
        raise typer.Exit(1)


def _show(found: dict[str, Any]) -> None:
    rows = [
        (each["id"], "signs here" if each["signs_here"] else "", "counts" if each["counts"] else each["why"])
        for each in found["keys"]
    ]
    print_table(("id", "", "state"), rows, empty="There is no key.")
    if not found["serial"]:
        note("one key for all gateways: 'pilotlight keyset vouch' makes it a set")


def _json(as_json: bool) -> list[str]:
    return ["--json"] * as_json
