"""Prints answers to stdout and the rest to stderr, with colours and drawn tables on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from pilotlight.cli.advice import advice
from pilotlight.cli.printable import printable, printable_json
from pilotlight.definitions.errors import CallFailed, Misuse, PilotlightError

if TYPE_CHECKING:
    from rich.console import Console

RED, PLAIN = "\x1b[31m", "\x1b[0m"


def console(*, stderr: bool = False) -> Console:
    """Return a rich console, plain where there is no terminal."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def on_terminal(*, stderr: bool = False) -> bool:
    return (sys.stderr if stderr else sys.stdout).isatty()


def print_text(text: str = "", *, colour: str = "") -> None:
    """Print a text to stdout, in a colour if that is a terminal."""
    shown = printable(text)
    print(f"{colour}{shown}{PLAIN}" if colour and on_terminal() else shown, flush=True)


def note(text: str, *, mark: str = "") -> None:
    """Print a text to stderr, after a red mark if that is a terminal."""
    if mark and on_terminal(stderr=True):
        mark = f"{RED}{mark}{PLAIN}"
    print(f"{mark} {printable(text)}" if mark else printable(text), file=sys.stderr, flush=True)


def print_json(value: Any, *, indent: bool = True) -> None:
    """Print `value` as JSON, indented or on one line."""
    data = msgspec.json.encode(value, enc_hook=str)
    print(printable_json((msgspec.json.format(data) if indent else data).decode()), flush=True)


@contextmanager
def bar(title: str, total: int) -> Iterator[Callable[[int, str], None]]:
    """Show a progress bar on a terminal; the yielded function takes (done, a word beside it)."""
    if not on_terminal(stderr=True):
        yield lambda _done, _more: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[more]}"))
    with Progress(*columns, TimeRemainingColumn(), console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total, more="")
        yield lambda done, more: bar.update(task, completed=done, more=more)


def error_json(error: PilotlightError) -> dict[str, Any]:
    """Return an error as a command with --json prints it: the problem document, with advice for the command line."""
    known = {"code": error.wire_code, "status": error.meaning.status, "title": error.meaning.title}
    wait = {} if error.retry_after is None else {"retry_after": error.retry_after}
    return {"error": known | {"detail": error.detail, "advice": advice(error)} | wait | error.more}


def show_error(error: PilotlightError) -> None:
    """Print an error and its advice to stderr."""
    if isinstance(error, CallFailed) and error.more.get("traceback"):
        note(str(error.more["traceback"]).rstrip())
    note(_text_of(error), mark="error:")
    for reached in error.more.get("limits", ()):
        note(f"  {_limit(reached)}")
    if not isinstance(error, Misuse):
        note(advice(error))
    if error.meaning.status >= 500 and "request_id" in error.more:
        note(f"request {error.more['request_id']}")


def _text_of(error: PilotlightError) -> str:
    """Return an error's text; of what a function raised with the type: `KeyError: 'a'`."""
    kind = str(error.more.get("exception", ""))
    return error.detail if error.detail.startswith(kind) else f"{kind}: {error.detail}"


def _limit(reached: dict[str, Any]) -> str:
    """Return `requests_per_s=5 of acme, calls to zoo:llm.chat: burst 10, left 0`."""
    to = f", calls to {reached['function']}" if reached.get("function") else ""
    rest = ", ".join(f"{name} {reached[name]:g}" for name in ("burst", "left", "current") if name in reached)
    return f"{reached.get('limit')}={reached.get('allowed', 0):g} of {reached.get('tenant')}{to}: {rest}"


def size(count: float) -> str:
    """Return bytes as `1.4 kB`."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def span(seconds: float) -> str:
    """Return seconds as `42s`, `3m`, `2h` or `5d`."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f}{unit}"
    return f"{max(0.0, seconds):.0f}s"


def ago(unix: float) -> str:
    """Return the time since a unix second."""
    return f"{span(time.time() - unix)} ago" if unix else "-"


def milliseconds(ms: float) -> str:
    """Return milliseconds as `7.6 us`, `0.8 ms`, `120 ms` or `2.31 s`."""
    if 0 < ms < 0.05:
        return f"{ms * 1000:.2g} us"
    if ms >= 1000:
        return f"{ms / 1000:.2f} s"
    return f"{ms:.0f} ms" if ms >= 10 else f"{ms:.1f} ms"
