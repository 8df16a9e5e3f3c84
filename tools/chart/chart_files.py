"""All files of the chart."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from typing import Any

import yaml

from tools.chart import ROOT
from tools.chart.chart_templates import default_of, overlay_objects, templates
from tools.chart.chart_values import SWITCHES, VALUES

MADE = "# Made by `python -m tools.chart` from infra/kustomize.\n"
TYPES = {str: "string", bool: "boolean", int: "integer", dict: "object", list: "array"}


def chart_files() -> dict[str, str]:
    """Text by path below the chart's folder."""
    cpu, gpu = overlay_objects("cpu"), overlay_objects("gpu")
    defaults: dict[str, tuple[Any, str]] = dict(SWITCHES)
    defaults |= {each.name: (default_of(gpu.values(), each), each.says) for each in VALUES}
    made = {f"templates/{name}": text for name, text in templates(cpu, gpu, overlay_objects("monitoring")).items()}
    return {
        "Chart.yaml": MADE + _chart(),
        "values.yaml": MADE + _values(defaults),
        "values.schema.json": json.dumps(_schema(defaults), indent=2) + "\n",
        **{name: MADE + text for name, text in made.items()},
    }


def _chart() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text: str = yaml.safe_dump(
        {
            "apiVersion": "v2",
            "name": "pilotlight",
            "description": project["description"],
            "type": "application",
            "version": project["version"],
            "appVersion": project["version"],
            "kubeVersion": ">=1.31.0-0",
        },
        sort_keys=False,
    )
    return text


def _values(defaults: Mapping[str, tuple[Any, str]]) -> str:
    """Each under what says what it is; those of one part below its name."""
    lines: list[str] = []
    part = ""
    for name, (default, says) in defaults.items():
        group, _, key = name.rpartition(".")
        if group != part:
            lines += [f"{group}:"] if group else []
            part = group
        text = f"# {says}\n{yaml.safe_dump({key: default}, sort_keys=False)}"
        lines += [("  " if group else "") + line for line in text.splitlines()]
    return "\n".join(lines) + "\n"


def _schema(defaults: Mapping[str, tuple[Any, str]]) -> dict[str, Any]:
    """A value that is written wrong is refused, and not passed over."""
    whole: dict[str, Any] = _object()
    for name, (default, says) in defaults.items():
        group, _, key = name.rpartition(".")
        owner = whole["properties"].setdefault(group, _object()) if group else whole
        owner["properties"][key] = {"type": TYPES[type(default)], "description": says}
    whole["properties"]["global"] = {"type": "object"}
    return {"$schema": "http://json-schema.org/draft-07/schema#", **whole}


def _object() -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": {}}
