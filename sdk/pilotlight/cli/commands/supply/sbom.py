"""`pilotlight sbom`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import note, print_json
from pilotlight.cli.session import ask, client

app = command_app()


@app.command(name="sbom")
def command(
    ref: Annotated[str, typer.Argument(help="function, or one of its versions", metavar="APP.FUNCTION[@vN]")],
    provenance: Annotated[
        bool, typer.Option("--provenance", help="print what it was built of instead, signed by the platform (DSSE)")
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="write it to a file")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="it is JSON anyway")] = False,  # noqa: ARG001
) -> None:
    """Print what a version is made of, as CycloneDX.

    The bill of materials has the base environment and its packages, locked packages, the files of the code, and models.

    \b
    pilotlight sbom shop.rank
    pilotlight sbom shop.rank@v3 -o rank.cdx.json
    pilotlight sbom shop.rank --provenance
    """
    found = ask(client().supply.get_document(ref, "provenance" if provenance else "sbom"))
    if output is None:
        print_json(found)
        return
    output.write_text(json.dumps(found, indent=2) + "\n")
    note(f"{output}: {len(found.get('components', ()))} components" if not provenance else str(output))
