"""Shows the stages of a call while it runs, and at its end where the time went."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from pilotlight.cli.output import console, milliseconds, note, on_terminal
from pilotlight.cli.printable import printable_line

if TYPE_CHECKING:
    from rich.text import Text

SHOWN_FROM_MS = 0.05
"""Shorter stages are not shown."""

ORDINARY = ("queued", "running")
"""Stages of every call, and of each hook that it runs through; a log does not show them."""


class Timeline:
    """Shows stages on stderr: on a terminal in one line that changes, elsewhere a line each."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._status: Any = None
        self._last = ""

    def __enter__(self) -> Timeline:
        if on_terminal(stderr=True):
            self._status = console(stderr=True).status(_plain(self._label))
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.hide()

    def hide(self) -> None:
        """Remove the line."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def on_stage(self, data: dict[str, Any]) -> None:
        """Show a stage: `name`, `ms` since the call began, and in `detail` the steps of a start so far."""
        name = str(data.get("name", ""))
        detail = data.get("detail") or {}
        why = detail.get("reason") or _steps(detail)
        text = f"{name} {milliseconds(float(data.get('ms', 0.0)))}{f' ({why})' if why else ''}"
        if self._status is not None:
            self._status.update(_plain(f"{self._label}: {text}"))
        elif name != self._last and name.rpartition(": ")[2] not in ORDINARY:
            note(f"{self._label}: {text}")
        self._last = name


def _plain(text: str) -> Text:
    """The text without markup."""
    from rich.text import Text

    return Text(printable_line(text))


def summary(response: dict[str, Any], waited_s: float = 0.0) -> str:
    """Return `hello.greet@v1  12 ms (queue 1.0 ms, execute 8.2 ms)  cold start bind 20 ms  0.000001 USD`.

    `waited_s`: seconds before the attempt that was taken.
    """
    latency, usage = response.get("latency") or {}, response.get("usage") or {}
    stages = _steps(latency.get("stages") or {})
    parts = [
        str(response.get("version", "")),
        f"{milliseconds(float(latency.get('total_ms', 0.0)))}{f' ({stages})' if stages else ''}",
    ]
    if waited_s:
        parts.append(f"{milliseconds(waited_s * 1000)} of waiting before that")
    if cold := response.get("cold_start"):
        parts.append(f"cold start {_steps(cold)}")
    if usage.get("batch_size", 1) > 1:
        parts.append(f"in a batch of {usage['batch_size']}")
    if usage.get("cost"):
        parts.append(f"{usage['cost']} {usage.get('currency', 'USD')}")
    return "  ".join(parts)


def _steps(steps: dict[str, Any]) -> str:
    numbers = {name: value for name, value in steps.items() if isinstance(value, int | float)}
    return ", ".join(f"{name} {milliseconds(ms)}" for name, ms in numbers.items() if ms >= SHOWN_FROM_MS)
