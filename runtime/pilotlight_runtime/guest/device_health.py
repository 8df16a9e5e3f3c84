"""What an answer says about the process that gave it."""

from __future__ import annotations

import sys

from pilotlight_core.model.messages.agent_messages import RemoteError
from pilotlight_runtime.guest import exits
from pilotlight_runtime.guest.frames import BatchResult, Result

DEAD_DEVICE = ("device-side assert", "illegal memory access", "unspecified launch failure", "illegal instruction")
"""CUDA errors after which a process's context is gone: every later call in it fails too."""


def exit_if_fatal(frame: Result | BatchResult) -> None:
    """Once an answer has been sent: end the process if its device is dead, make room on it if it was full.

    Only now are the exception and the frames that held tensors gone.
    """
    error = frame.error if isinstance(frame, Result) else _of_batch(frame)
    if error is None:
        return
    if is_fatal(error):
        exits.exit_now(exits.DEVICE_DEAD, f"the device's context is dead, so this container ends: {error.message}")
    if error.type == "torch.OutOfMemoryError":
        _empty_cache()


def is_fatal(error: RemoteError) -> bool:
    """Whether the device's context is dead, so that this process can only end."""
    return "CUDA" in error.message and any(sign in error.message for sign in DEAD_DEVICE)


def _of_batch(frame: BatchResult) -> RemoteError | None:
    return frame.results[0].error if frame.whole and frame.results else None


def _empty_cache() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
