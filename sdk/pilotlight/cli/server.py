"""Whether the platform's own processes are installed here: `pip install pilotlight` alone brings the SDK."""

from __future__ import annotations

from importlib.util import find_spec

from pilotlight.errors import PilotlightError
from pilotlight_core.model.errors import error_from_code

NEEDED = ("nats", "starlette", "uvicorn")


class NotInstalled(PilotlightError):
    """A part of the platform is not installed."""

    def __str__(self) -> str:
        return self.detail


def need_server(module: str) -> None:
    """See that `python -m module` can be run.

    Raises:
        BadInput: with the command that installs what is missing.
    """
    missing = [name for name in (*NEEDED, module.partition(".")[0]) if find_spec(name) is None]
    if missing:
        raise error_from_code(
            "bad_input", f"The platform is not installed here ({', '.join(missing)}): pip install 'pilotlight[server]'."
        )
