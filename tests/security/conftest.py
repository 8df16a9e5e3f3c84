"""The platform that is attacked: as the system's tests have it, but one of its own."""

from __future__ import annotations

from tests.system.conftest import collector, platform, stranger_key

__all__ = ["collector", "platform", "stranger_key"]
