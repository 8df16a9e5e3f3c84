"""Whether the platform's own processes are installed here: `pip install pilotlight` alone brings the SDK."""

from __future__ import annotations

from importlib.util import find_spec

from pilotlight.errors import OptionError

NEEDED = ("nats", "starlette", "uvicorn")


def need_server(module: str) -> None:
    """See that `python -m module` can be run.

    Raises:
        OptionError: with the command that installs what is missing.
    """
    missing = [name for name in (*NEEDED, module.partition(".")[0]) if find_spec(name) is None]
    if missing:
        raise OptionError(
            f"The platform is not installed here ({', '.join(missing)}): pip install 'pilotlight[server]'."
        )
