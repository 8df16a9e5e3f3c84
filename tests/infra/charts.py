"""The chart of `infra/helm`, as Helm renders it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

import yaml

from tests.infra.manifests import LOADER, Manifest
from tools.chart import CHART
from tools.chart.chart_templates import Key, by_key

# Helm is a library in Go, whose threads do not outlive the fork that starts pytest's workers.
RENDER = """
import json, sys, helm_python
with helm_python.Chart.load(sys.argv[1]) as chart:
    each = [chart.render(values, name="pilotlight", namespace="pilotlight") for values in json.loads(sys.argv[2])]
print(json.dumps(each))
"""
LINT = "import json, sys, helm_python; print(json.dumps(helm_python.lint(sys.argv[1])))"
Release = dict[Key, Manifest]


class ChartRefusal(Exception):
    """Helm renders nothing, and says why."""


def helm(script: str, *words: str) -> Any:
    """What a script prints as JSON.

    Raises:
        ChartRefusal: it has failed.
    """
    command = [sys.executable, "-c", script, str(CHART), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ChartRefusal(done.stderr)
    return json.loads(done.stdout)


def releases(*values: Mapping[str, Any]) -> list[Release]:
    """The objects of releases with each of these values over those of the chart."""
    return [
        by_key(each for text in files.values() for each in _objects(text)) for files in helm(RENDER, json.dumps(values))
    ]


def released(**values: Any) -> Release:
    (found,) = releases(values)
    return found


@cache
def _objects(text: str) -> tuple[Manifest, ...]:
    return tuple(each for each in yaml.load_all(text, LOADER) if each)


def without_digests(objects: Release) -> Release:
    """As manifests are: there the names of maps change with their content, and here what pods are told of them."""
    found = json.loads(json.dumps(list(objects.values())))
    for each in found:
        if "template" in each.get("spec", {}):
            assert all(name.startswith("checksum/") for name in each["spec"]["template"]["metadata"].pop("annotations"))
    return by_key(found)
