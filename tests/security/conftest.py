"""The platform that is attacked: as the system's tests have it, but one of its own."""

from __future__ import annotations

from tests.system.conftest import platform, stranger_key

__all__ = ["platform", "stranger_key"]
