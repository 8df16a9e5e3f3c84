"""The errors of sandboxes.

SandboxError ├── SandboxUnavailable     this node lacks what a sandbox needs; the message names the command that mends
it ├── SandboxNotStarted      this one sandbox could not be started └── UidsExhausted          every host uid of the
range is in use
"""

from __future__ import annotations


class SandboxError(Exception):
    """Any of these."""


class SandboxUnavailable(SandboxError):
    """This node lacks what a sandbox needs."""


class SandboxNotStarted(SandboxError):
    """A sandbox could not be started."""


class UidsExhausted(SandboxError):
    """Every host uid of the range is in use."""
