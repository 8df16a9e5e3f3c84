"""Names that a shell completes, asked of the platform. Failures complete nothing: a shell has no place for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from pilotlight.cli.session import ask, client
from pilotlight_core.model.api.call_api import AppInfo

WITHIN_S = 1.0
"""A shell that waits for longer seems stuck."""


def app_names(incomplete: str) -> list[str]:
    """Return the deployed apps that begin so."""
    return _starting(incomplete, (app.app for app in _apps()))


def function_names(incomplete: str) -> list[str]:
    """Return the deployed functions, and methods of classes, that begin so."""
    return _starting(incomplete, (name for app in _apps() if not app.stopped for name in _callable_in(app)))


def scalable_names(incomplete: str) -> list[str]:
    """Return the deployed functions and classes that begin so."""
    return _starting(
        incomplete, (f"{app.app}.{one.name}" for app in _apps() if not app.stopped for one in app.functions)
    )


def log_names(incomplete: str) -> list[str]:
    """Return the apps and functions with logs that begin so."""
    apps = _apps()
    names = [app.app for app in apps] + [f"{app.app}.{one.name}" for app in apps for one in app.functions]
    return _starting(incomplete, names)


def _callable_in(app: AppInfo) -> Iterable[str]:
    for function in app.functions:
        for method in function.spec.methods:
            yield f"{app.app}.{function.name}{f'.{method.name}' if method.name else ''}"


def _apps() -> tuple[AppInfo, ...]:
    async def listed() -> tuple[AppInfo, ...]:
        async with asyncio.timeout(WITHIN_S):
            return await client().platform.list_apps()

    try:
        return ask(listed())
    except Exception:  # noqa: BLE001 - no platform, no key, no answer in time
        return ()


def _starting(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
