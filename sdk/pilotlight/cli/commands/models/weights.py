"""`pilotlight weights`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.commands.deploy import files_text, upload_progress
from pilotlight.cli.output import ago, note, print_json, print_text, size
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight.definitions.errors import OptionError
from pilotlight.packing.folder_signing import FolderSigner, read_signature_file, signed_parts_of
from pilotlight.packing.weights_upload import pack_weights, push_weights
from pilotlight_core.model.api.weights_api import RevisionInfo, SignatureInfo
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.versions.pushed_weights import WEIGHTS_PART_BYTES, WeightsRef, parse_weights

SHOWN_DIGITS = 12
app = command_app(no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Ref = Annotated[str, typer.Argument(help="name, or name@digest; a digest may be shortened", metavar="NAME[@DIGEST]")]


@app.callback()
def group() -> None:
    """Files of models, pushed once and read by many functions."""


@app.command(name="push")
def push(
    name: Annotated[str, typer.Argument(help="the name by which functions have them, such as llama")],
    folder: Annotated[Path, typer.Argument(help="the folder with all of their files")],
    allow_pickle: Annotated[
        bool, typer.Option("--allow-pickle", help="push files too that can run code when they are read")
    ] = False,
    sign: Annotated[Path | None, typer.Option(help="sign them with this private key of yours")] = None,
    signature: Annotated[
        Path | None, typer.Option(help="their signature, by 'pilotlight trust sign' or by their vendor")
    ] = None,
    as_json: Json = False,
) -> None:
    """Push a folder of weights. Broken off and run again, it goes on.

    What is stored is not sent again.

    Files named in .pilotlightignore (as in .gitignore) are left out.

    \b
    pilotlight weights push llama models/llama-3.2-1b
    pilotlight weights push old-bert checkpoints/bert --allow-pickle
    pilotlight weights push llama models/llama-3.2-1b --sign release.key
    """
    check_name(name, "name")
    if sign is not None and signature is not None:
        raise OptionError("--sign makes a signature, --signature gives one: name one of them.", field="--sign")
    signer = None if sign is None else FolderSigner.load(sign)
    given = "" if signature is None else read_signature_file(signature)
    with upload_progress(name, "reading") as progress:
        packed = pack_weights(folder.expanduser(), allow_pickles=allow_pickle, progress=progress)
    if signer is not None:
        given = signer.sign(name, signed_parts_of(packed.parts), WEIGHTS_PART_BYTES).decode()
    with _noting_interrupt(), upload_progress(name) as progress:
        work = push_weights(
            client().weights, name, packed, allow_pickles=allow_pickle, signature=given, progress=progress,
            told=_show_missing,
        )  # fmt: skip
        pushed = ask(work)
    if as_json:
        signed = {} if pushed.signed is None else {"signed": pushed.signed}
        print_json({"name": name, "digest": pushed.digest, "files": packed.files, "size": packed.size} | signed)
        return
    was = "Unchanged" if pushed.unchanged else "Pushed"
    print_text(f"{was}: {name}@{pushed.digest[:SHOWN_DIGITS]}, {files_text(packed.files)}, {size(packed.size)}.")
    if pushed.signed is not None:
        print_text(f"They are {_signed_text(pushed.signed)}.")
    print_text(f'A function has them by weights=["{name}"], and finds them in pilotlight.weights("{name}").')


@app.command(name="list")
def list_weights(as_json: Json = False) -> None:
    """List weights, and the functions that use them.

    \b
    pilotlight weights list
    """
    found = ask(client().weights.list_weights())
    if as_json:
        print_json(found)
        return
    rows = [
        (
            f"{one.name}@{revision.digest[:SHOWN_DIGITS]}",
            size(revision.size),
            revision.files,
            ago(revision.pushed_at),
            "yes" if revision.pickles else "-",
            "-" if revision.signed is None else "yes" if revision.signed.counts else "counts no more",
            ", ".join(revision.functions) or "-",
        )
        for one in found
        for revision in reversed(one.revisions)
    ]
    columns = ("weights", "size", "files", "pushed", "pickles", "signed", "functions")
    print_table(columns, rows, empty="No weights.", right=("size", "files"), less=("pickles", "signed"))


@app.command(name="show")
def show(weights: Ref, as_json: Json = False) -> None:
    """Show the files of weights.

    Without a digest they are those that were pushed last.

    \b
    pilotlight weights show llama
    pilotlight weights show llama@3f9a0c1d
    """
    found = ask(client().weights.show(parse_weights(weights)))
    if as_json:
        print_json(found)
        return
    revision = found.revision
    print_text(f"{found.name}@{revision.digest}")
    print_text(f"pushed {ago(revision.pushed_at)} by key {revision.pushed_by}, {size(revision.size)}")
    print_text(_about(revision))
    print_text("not signed" if revision.signed is None else _signed_text(revision.signed))
    print_table(
        ("file", "size", "parts"),
        [(one.path, size(one.size), one.parts) for one in found.contents],
        empty="No files.",
        right=("size", "parts"),
    )


@app.command(name="rm")
def remove(weights: Ref, as_json: Json = False) -> None:
    """Remove weights that no function in service uses.

    Without a digest that is all of the name. The space is free within two days.

    \b
    pilotlight weights rm llama@3f9a0c1d
    pilotlight weights rm llama
    """
    gone = ask(client().weights.remove(parse_weights(weights)))
    if as_json:
        print_json(gone)
        return
    for digest in gone.digests:
        print_text(f"Removed {WeightsRef(gone.name, digest[:SHOWN_DIGITS])}.")


def _about(revision: RevisionInfo) -> str:
    used = f"used by {', '.join(revision.functions)}" if revision.functions else "used by no function in service"
    return f"{used}; has pickles: {', '.join(revision.pickles)}" if revision.pickles else used


def _signed_text(by: SignatureInfo) -> str:
    return f"signed by {by.name or 'a key'} ({by.key})" + ("" if by.counts else f", which {by.why}")


def _show_missing(parts: int, missing: int) -> None:
    note(f"uploading {parts} {'part' if parts == 1 else 'parts'}, {size(missing)}")


@contextmanager
def _noting_interrupt() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        note("What was uploaded stays: run the command again to go on.")
        raise
