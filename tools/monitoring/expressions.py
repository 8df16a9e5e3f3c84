"""What PromQL expressions ask for, held against what processes show."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import promql_parser
import yaml
from prometheus_client.parser import text_string_to_metric_families

RATE_INTERVAL = "$__rate_interval"
"""Grafana puts in how long at least a rate needs; a parser does not know it."""


@dataclass(frozen=True)
class Asked:
    """A series that an expression asks for, by its name and the labels that it is chosen or grouped by."""

    name: str
    labels: frozenset[str]
    values: tuple[tuple[str, str], ...]
    """Of labels that are to equal something."""


def asked_by(expression: str) -> list[Asked]:
    """All series of an expression.

    Raises:
        ValueError: it is no PromQL.
    """
    found: list[Asked] = []
    _collect(promql_parser.parse(expression.replace(RATE_INTERVAL, "5m")), frozenset(), found)
    return found


def expressions_of(path: Path) -> Iterator[tuple[str, str]]:
    """Where each expression of a file of rules (YAML) or of a dashboard (JSON) stands, and it."""
    if path.suffix == ".json":
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel.get("targets", ()):
                yield f"{path.name}: {panel['title']}", target["expr"]
        return
    for group in yaml.safe_load(path.read_text())["groups"]:
        for rule in group["rules"]:
            yield f"{path.name}: {rule.get('alert') or rule['record']}", rule["expr"]


def records_of(path: Path) -> dict[str, frozenset[str]]:
    """The series that a file of rules records, and their labels."""
    return {
        rule["record"]: frozenset(rule.get("labels", ())) | _kept_labels(rule["expr"])
        for group in yaml.safe_load(path.read_text())["groups"]
        for rule in group["rules"]
        if "record" in rule
    }


SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}


def shown_by(expositions: Iterable[str]) -> dict[str, dict[str, set[str]]]:
    """The samples of scrapes, by name, and of their labels what these had as values.

    A family that has none as long as nothing has happened is there without labels: nobody knows them then.
    """
    shown: dict[str, dict[str, set[str]]] = {}
    for exposition in expositions:
        for family in text_string_to_metric_families(exposition):
            for suffix in SUFFIXES.get(family.type, ("",)) if not family.samples else ():
                shown.setdefault(family.name + suffix, {})
            for sample in family.samples:
                labels = shown.setdefault(sample.name, {})
                for label, value in sample.labels.items():
                    labels.setdefault(label, set()).add(value)
    return shown


EMPTY = frozenset({"pilotlight_calls_shed_total", "pilotlight_certificate_expires_seconds", "pilotlight_slowdown_max"})
"""Families that show nothing until something has happened, or where there is no such thing."""
SCRAPED = frozenset({"instance", "job"})
"""Labels that Prometheus adds."""


def missing(
    expressions: Iterable[tuple[str, str]],
    shown: Mapping[str, Mapping[str, set[str]]],
    recorded: Mapping[str, frozenset[str]],
) -> list[str]:
    """What is asked for and shown by nobody, each in a line."""
    found: list[str] = []
    for where, expression in expressions:
        for asked in asked_by(expression):
            if asked.name in recorded:
                labels: Iterable[str] = recorded[asked.name]
            elif asked.name in shown:
                labels = shown[asked.name]
            else:
                found.append(f"{where}: {asked.name} is shown by no process")
                continue
            if not labels and asked.name in EMPTY:
                continue
            if unknown := asked.labels - SCRAPED - set(labels):
                found.append(f"{where}: {asked.name} has no label {min(unknown)}")
            found += [
                f"{where}: {asked.name} has no {label}={value!r}"
                for label, value in asked.values
                if asked.name in shown and label in shown[asked.name] and value not in shown[asked.name][label]
            ]
    return found


def _collect(node: Any, grouped: frozenset[str], found: list[Asked]) -> None:
    kind = type(node).__name__
    if kind == "VectorSelector":
        matchers = list(node.matchers.matchers)
        equal = tuple((each.name, each.value) for each in matchers if each.op == promql_parser.MatchOp.Equal)
        found.append(Asked(node.name, grouped | {each.name for each in matchers}, equal))
    elif kind == "MatrixSelector":
        _collect(node.vector_selector, grouped, found)
    elif kind == "AggregateExpr":
        by = frozenset(node.modifier.labels) if node.modifier is not None else frozenset[str]()
        _collect(node.expr, grouped | by, found)
    elif kind == "BinaryExpr":
        _collect(node.lhs, grouped, found)
        _collect(node.rhs, grouped, found)
    elif kind == "Call":
        for argument in node.args:
            _collect(argument, grouped, found)
    elif kind in ("ParenExpr", "UnaryExpr", "SubqueryExpr"):
        _collect(node.expr, grouped, found)


def _kept_labels(expression: str) -> frozenset[str]:
    return frozenset(label for asked in asked_by(expression) for label in asked.labels)
