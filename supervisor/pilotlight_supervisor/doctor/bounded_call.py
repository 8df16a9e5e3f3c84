"""Asks the kernel what it may never answer, such as what is in a folder of a server that is gone, and waits a while."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def call_bounded(call: Callable[[], Found], within_s: float) -> Found:
    """Its result, from a thread that is left behind where nothing comes, and ends with the process.

    Raises:
        TimeoutError: nothing came; an OSError.
        Exception: what the call raised.
    """
    found: list[Found] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            found.append(call())
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True, name="doctor call")
    thread.start()
    thread.join(within_s)
    if raised:
        raise raised[0]
    if not found:
        raise TimeoutError(f"nothing came within {within_s:g} s")
    return found[0]
