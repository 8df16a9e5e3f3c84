"""Times as people say and read them: of this machine's zone, which is shown with them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import typer

TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")


def read_instant(text: str, option: str, at: float) -> float:
    """Return the unix second of `18:00` (the next after `at`), `2026-11-24 18:00`, or that with a zone: `…+01:00`.

    Raises:
        typer.BadParameter: naming the option.
    """
    # Without a zone a datetime is of this machine's, whose clock may be set between two days.
    if found := TIME_OF_DAY.fullmatch(text):
        today = datetime.fromtimestamp(at).replace(  # noqa: DTZ006
            hour=int(found[1]), minute=int(found[2]), second=0, microsecond=0
        )
        return next(shown for days in (0, 1, 2) if (shown := (today + timedelta(days=days)).timestamp()) > at)
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise typer.BadParameter(f"{option} {text!r}: expected a time such as 18:00 or '2026-11-24 18:00'.") from None


def show_instant(at: float) -> str:
    """Return a unix second as `2026-11-24 18:00 CET`, in this machine's zone."""
    local = datetime.fromtimestamp(at).astimezone()
    return f"{local:%Y-%m-%d %H:%M:%S} ".replace(":00 ", " ") + f"{local:%Z}"
