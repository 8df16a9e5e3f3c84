"""The reference of the processes' settings, from their structs."""

from __future__ import annotations

from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from pilotlight_core.host.config import AgentSettings, ControllerSettings
from pilotlight_gateway.settings import DutyProcessSettings, ServeSettings
from pilotlight_supervisor.platform_plan import UpSettings
from tools.reference.docstrings import code, table

HEAD = """# Settings

Of each process, as options or from the environment: `--cpu-slots 4` is `PILOTLIGHT_CPU_SLOTS=4`.
"""
PROCESSES: dict[str, type[msgspec.Struct]] = {
    "pilotlight up": UpSettings,
    "python -m pilotlight_gateway": ServeSettings,
    "python -m pilotlight_gateway.duties": DutyProcessSettings,
    "python -m pilotlight_autoscaler": ControllerSettings,
    "python -m pilotlight_runtime": AgentSettings,
}


def settings_page() -> str:
    """The page."""
    parts = [HEAD]
    for command, kind in PROCESSES.items():
        parts += [f"## {command}", table(("option", "default", "is"), _rows(kind))]
    return "\n\n".join(parts) + "\n"


def _rows(kind: type[msgspec.Struct]) -> list[tuple[str, str, str]]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        (code(f"--{field.name.replace('_', '-')}"), _default(field.default), description(hints[field.name]))
        for field in msgspec.structs.fields(kind)
    ]


def description(hint: Any) -> str:
    """What the annotation of a setting says that it is."""
    if get_origin(hint) is not Annotated:
        return ""
    return next((meta.description for meta in get_args(hint)[1:] if getattr(meta, "description", None)), "")


def _default(value: Any) -> str:
    if value is msgspec.NODEFAULT:
        return ""
    return code("" if value is None else str(value))
