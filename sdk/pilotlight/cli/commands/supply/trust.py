"""`pilotlight trust`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.commands.deploy import files_text, upload_progress
from pilotlight.cli.output import ago, note, print_json, print_text
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight.definitions.errors import OptionError
from pilotlight.packing.folder_signing import FolderSigner, signed_parts_of
from pilotlight.packing.weights_upload import pack_weights
from pilotlight_core.model.api.supply.supply_api import TrustedKeyRequest
from pilotlight_core.model.supply.trust_records import hint_of
from pilotlight_core.model.versions.pushed_weights import WEIGHTS_PART_BYTES

DAY_S = 86_400.0
app = command_app(no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Name = Annotated[str, typer.Argument(help="its name on record, such as release")]


@app.callback()
def group() -> None:
    """Keys by which you sign what you deploy."""


@app.command()
def new(
    file: Annotated[Path, typer.Argument(help="where the private key is to be; the public one goes beside it")],
    as_json: Json = False,
) -> None:
    """Make a key to sign with, on this machine.

    No platform ever sees it.

    \b
    pilotlight trust new release.key
    """
    signer = FolderSigner.create(file)
    public = file.with_name(f"{file.name}.pub")
    if as_json:
        print_json({"key": str(file), "public": str(public), "id": hint_of(signer.pem)[:16]})
        return
    print_text(f"{file}: your private key. Keep it, and give it to nobody.\n{public}: the public one.")
    note(f"next: pilotlight trust add release {public}")


@app.command()
def add(
    name: Name,
    public: Annotated[Path, typer.Argument(help="PEM of the public key")],
    days: Annotated[float, typer.Option(min=0, help="for so many days it counts; 0: for good")] = 0,
    as_json: Json = False,
) -> None:
    """Put a public key on record.

    Add the next one before the present one expires: both count until then.

    \b
    pilotlight trust add release release.key.pub --days 365
    """
    try:
        pem = public.expanduser().read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"{public} cannot be read: {error}.", field="public") from None
    not_after = time.time() + days * DAY_S if days else 0.0
    made = ask(client().supply.trust(name, TrustedKeyRequest(pem=pem, not_after=not_after)))
    if as_json:
        print_json(made)
        return
    print_text(f"{made['name']} ({made['id']}) is on record.")
    note("next: pilotlight deploy app.py --sign KEY")


@app.command(name="list")
def list_trusted(as_json: Json = False) -> None:
    """List the keys on record.

    \b
    pilotlight trust list
    """
    found = ask(client().supply.list_trusted())
    if as_json:
        print_json(found)
        return
    rows = [
        (each["name"], each["id"], ago(each["added_at"]), "counts" if each["counts"] else each["why"]) for each in found
    ]
    print_table(("name", "id", "added", "state"), rows, empty="No keys: nothing that you deploy is signed by you.")


@app.command()
def revoke(
    name: Name,
    reason: Annotated[str, typer.Option(help="why, for those who read it later")] = "",
    as_json: Json = False,
) -> None:
    """Let what a key has signed count no more.

    Nothing that runs is ended; its next start is refused.

    \b
    pilotlight trust revoke release --reason "the laptop was stolen"
    """
    made = ask(client().supply.revoke(name, reason))
    if as_json:
        print_json(made)
        return
    print_text(f"{made['name']} ({made['id']}) {made['why']}.")


@app.command()
def sign(
    folder: Annotated[Path, typer.Argument(help="a folder of weights")],
    key: Annotated[Path, typer.Option(help="the private key")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="default: FOLDER.sig")] = None,
    as_json: Json = False,
) -> None:
    """Sign a folder of weights.

    In the format of model-signing, in parts as 'pilotlight weights push' sends them.

    \b
    pilotlight trust sign models/llama --key release.key
    pilotlight deploy app.py --sign release.key --signature llama=models/llama.sig
    """
    signer, folder = FolderSigner.load(key), folder.expanduser()
    with upload_progress(folder.name, "reading") as progress:
        packed = pack_weights(folder, allow_pickles=True, progress=progress)
    target = output or folder.with_name(f"{folder.name}.sig")
    target.write_bytes(signer.sign(folder.name, signed_parts_of(packed.parts), WEIGHTS_PART_BYTES))
    if as_json:
        print_json({"signature": str(target), "files": packed.files, "key": hint_of(signer.pem)[:16]})
        return
    print_text(f"{target}: {files_text(packed.files)}, signed by {hint_of(signer.pem)[:16]}.")
