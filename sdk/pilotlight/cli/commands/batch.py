"""`pilotlight batch`."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from codecs import getincrementaldecoder
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from pilotlight.cli.arguments import read_span
from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import ago, bar, note, on_terminal, print_json, print_text, span
from pilotlight.cli.printable import printable_json
from pilotlight.cli.session import ask, client, each
from pilotlight.cli.tables import print_table
from pilotlight.definitions.errors import BadInput, Misuse
from pilotlight_core.model.ids import token
from pilotlight_core.model.suggestions import did_you_mean, nearest

app = command_app(no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Id = Annotated[str, typer.Argument(help="the batch's id, as submitted or listed")]
Wait = Annotated[bool, typer.Option("--wait", help="until it is over; exit code 1 unless every item succeeded")]
OVER = ("completed", "cancelled", "failed")
POLL_S = 1.0
PIECE = 2**20
LINES_SHOWN = 10
"""Wrong lines that are printed."""


@app.callback()
def group() -> None:
    """Many inputs as one, run at the lowest class."""


@app.command()
def submit(
    function: Annotated[str, typer.Argument(help="app.function")],
    file: Annotated[Path, typer.Argument(help="JSON lines; - reads stdin", allow_dash=True)],
    method: Annotated[str | None, typer.Option(help="of a class")] = None,
    label: Annotated[str, typer.Option(help="what it is for")] = "",
    expires: Annotated[str, typer.Option(help="in which its items must start: 6h, 2d")] = "1d",
    wait: Wait = False,
    as_json: Json = False,
) -> None:
    """Submit a file with an input on each line. No line starts before all are checked. The id goes to stdout.

    \b
    {"custom_id": "row-1", "input": {"name": "Ada"}}
    {"custom_id": "row-2", "input": {"name": "Bob"}}

    \b
    BATCH=$(pilotlight batch submit hello.greet inputs.jsonl)
    pilotlight batch submit hello.greet inputs.jsonl --wait
    """
    named = {"function": function, "method": method, "label": label or None}
    params = {key: value for key, value in named.items() if value is not None}
    params["expires_in_s"] = f"{read_span(expires, '--expires'):g}"
    try:
        with _upload(file) as read:
            batch = ask(client().batches.submit(params, f"cli-{token()}", read))
    except BadInput as error:
        _list_wrong_lines(error.more.get("errors"))
        raise
    if wait:
        if not as_json:
            print_text(batch["id"])
        batch = _watch(batch)
    if as_json:
        print_json(batch)
    elif not wait:
        print_text(batch["id"])
        follow = f"pilotlight batch status {batch['id']} --wait"
        note(f"{batch['total']} inputs for {batch['function']}; follow them with '{follow}'.")
    _exit(batch, wait=wait)


@app.command(name="list")
def list_batches(as_json: Json = False) -> None:
    """List batches, newest first.

    \b
    pilotlight batch list
    """
    batches = ask(client().batches.list_batches())
    if as_json:
        print_json(batches)
        return
    columns = ("id", "function", "state", "done", "failed", "of", "created", "label")
    rows = [_row(one) for one in batches]
    print_table(columns, rows, empty="No batches.", right=("done", "failed", "of"), less=("label", "created", "failed"))


@app.command()
def status(id: Id, wait: Wait = False, as_json: Json = False) -> None:  # noqa: A002 - what the API calls it
    """Show a batch's progress.

    \b
    pilotlight batch status batch_8c1f… --wait
    """
    batch = ask(client().batches.get(id))
    if wait:
        batch = _watch(batch)
    if as_json:
        print_json(batch)
    else:
        _show(batch)
    _exit(batch, wait=wait)


@app.command()
def results(
    id: Id,  # noqa: A002
    state: Annotated[str, typer.Option(help="only these, with commas between: succeeded,failed")] = "",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="a file instead of stdout")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="errors, and where they were written, as JSON too")] = False,
) -> None:
    """Print results as JSON lines, in the order of the inputs.

    \b
    pilotlight batch results batch_8c1f… -o results.jsonl
    pilotlight batch results batch_8c1f… --state failed
    """
    lines = each(client().batches.read_results(id, state))
    if output is None:
        _write(lines)
        return
    try:
        with output.open("wb") as file:
            for piece in lines:
                file.write(piece)
    except OSError as error:
        raise Misuse(f"{output} cannot be written: {error.strerror}. Name another with -o.", field="output") from None
    if as_json:
        print_json({"id": id, "written": str(output)})
    else:
        note(f"Written to {output}.")


@app.command()
def cancel(id: Id, as_json: Json = False) -> None:  # noqa: A002
    """Cancel the waiting calls of a batch. Running ones end by themselves, and are billed.

    \b
    pilotlight batch cancel batch_8c1f…
    """
    _print_state(ask(client().batches.cancel(id)), as_json=as_json)


def _write(pieces: Iterable[bytes]) -> None:
    """Write results to stdout: as they come, and to a terminal with escapes that mean the same."""
    decoder = getincrementaldecoder("utf-8")("replace")
    shows = on_terminal()
    for piece in pieces:
        if shows:
            sys.stdout.write(printable_json(decoder.decode(piece)))
        else:
            sys.stdout.buffer.write(piece)
    sys.stdout.flush()


@app.command()
def resume(id: Id, as_json: Json = False) -> None:  # noqa: A002
    """Continue a cancelled batch. Its cancelled calls run again.

    \b
    pilotlight batch resume batch_8c1f…
    """
    _print_state(ask(client().batches.resume(id)), as_json=as_json)


def _list_wrong_lines(errors: Any) -> None:
    """Print the first of several wrong lines; the error itself names a single one."""
    if not isinstance(errors, list) or len(errors) < 2:
        return
    for one in errors[:LINES_SHOWN]:
        name = f" ({one['custom_id']})" if one.get("custom_id") else ""
        note(f"line {one['line']}{name}: {one['detail']}")


@contextmanager
def _upload(file: Path) -> Iterator[Callable[[], Any]]:
    """Yield a function that reads the file anew, and moves a bar."""
    data = sys.stdin.buffer.read() if str(file) == "-" else None
    size = _size(file) if data is None else len(data)

    def pieces() -> Iterator[bytes]:
        if data is not None:
            yield from (data[start : start + PIECE] for start in range(0, len(data), PIECE))
            return
        with file.open("rb") as lines:
            while piece := lines.read(PIECE):
                yield piece

    with bar("upload", size) as advance:

        async def read() -> AsyncIterator[bytes]:
            done = 0
            for piece in pieces():
                yield piece
                done += len(piece)
                advance(done, "")

        yield read


def _size(file: Path) -> int:
    """Return the size of a readable file, in bytes.

    Raises:
        Misuse: if it cannot be read.
    """
    try:
        with file.open("rb") as lines:
            return lines.seek(0, os.SEEK_END)
    except FileNotFoundError:
        wrong = f"There is no file {file}."
        with contextlib.suppress(OSError):
            wrong += did_you_mean(nearest(file.name, (one.name for one in file.parent.iterdir())))
    except IsADirectoryError:
        wrong = f"{file} is a folder."
    except OSError as error:
        wrong = f"{file} cannot be read: {error.strerror}."
    raise Misuse(f"{wrong} Name a file with an input on each line, or - for stdin.", field="file")


def _watch(batch: dict[str, Any]) -> dict[str, Any]:
    with bar(batch["id"], batch["total"]) as advance:
        while batch["state"] not in OVER:
            time.sleep(POLL_S)
            batch = ask(client().batches.get(batch["id"]))
            advance(_ended(batch), f"{batch['counts']['failed']} failed")
    return batch


def _show(batch: dict[str, Any]) -> None:
    counts = batch["counts"]
    ended = ", ".join(f"{counts[state]} {state}" for state in counts if counts[state]) or "none"
    print_text(f"{batch['id']}  {batch['state']}  {batch['function']}  {batch['label']}".rstrip())
    print_text(f"ended    {_ended(batch)} of {batch['total']}: {ended}")
    print_text(f"under way  {batch['submitted'] - _ended(batch)}")
    if batch["state"] not in OVER:
        print_text(f"expires  in {span(float(batch['expires_at']) - time.time())}")
    if batch["reason"]:
        print_text(f"reason   {batch['reason']}")


def _print_state(batch: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(batch)
    else:
        print_text(f"{batch['id']} is {batch['state']}.")


def _exit(batch: dict[str, Any], *, wait: bool) -> None:
    if wait and batch["counts"]["succeeded"] != batch["total"]:
        counts = batch["counts"]
        note(f"{batch['state']}: {counts['succeeded']} of {batch['total']} succeeded, {counts['failed']} failed.")
        raise typer.Exit(1)


def _ended(batch: dict[str, Any]) -> int:
    return sum(batch["counts"].values())


def _row(batch: dict[str, Any]) -> tuple[Any, ...]:
    return (
        batch["id"], batch["function"], batch["state"], _ended(batch), batch["counts"]["failed"], batch["total"],
        ago(float(batch["created_at"])), batch["label"],
    )  # fmt: skip
