"""Puts the values of secrets where the function's specification wants them."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pilotlight_runtime.guest.basics.remote_errors import hide_in_errors

FILE_MODE = 0o400


def place_secrets(secrets: Mapping[str, str]) -> None:
    """Set variables, and write files below /run/secrets, which is in this sandbox's memory. Raises OSError.

    A variable that a process sets itself is in its memory alone: `/proc/PID/environ` shows what it was started with.
    """
    if not secrets:
        return
    hide_in_errors(secrets.values())
    for place, value in secrets.items():
        if place.startswith("/"):
            with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "wb") as file:
                file.write(value.encode())
        else:
            os.environ[place] = value
