"""What the platform says of a container is in its function's log, with a sandbox or without one."""

from __future__ import annotations

from typing import cast

from pilotlight_core.model.messages.logs import LogLine
from pilotlight_runtime.containers.container_log import ContainerLog
from pilotlight_runtime.logs.log_shipper import LogKey, LogShipper
from pilotlight_runtime.logs.log_tap import LogTap
from tests.builders.specs import function_spec, manifest


class Offered:
    """Takes the lines that would be shipped."""

    def __init__(self) -> None:
        self.lines: list[tuple[LogKey, str]] = []

    def offer(self, key: LogKey, line: LogLine) -> None:
        self.lines.append((key, line.text))


def test_without_a_sandbox_each_line_is_one_of_the_log() -> None:
    """As a resolver says it; before the manifest is known nobody is told."""
    offered = Offered()
    log = ContainerLog(cast("LogShipper", offered), "c1")
    log.log("nobody's")
    made = log.manifest = manifest(function_spec())
    log.log("no solution:\n  a needs b")

    key = LogKey(made.tenant, made.app, made.function)
    assert offered.lines == [(key, "no solution:"), (key, "  a needs b")]


def test_a_sandboxes_lines_are_its_containers() -> None:
    """And what is said goes between them."""
    offered, tap = Offered(), Tap()
    log = ContainerLog(cast("LogShipper", offered), "c1")
    made = log.manifest = manifest(function_spec())
    log.take(cast("LogTap", tap))
    tap.sink(LogLine(0.0, "stdout", "hello", "c1"))
    log.log("it ends")

    assert (tap.container, tap.said) == ("c1", ["it ends"])
    assert offered.lines == [(LogKey(made.tenant, made.app, made.function), "hello")]


class Tap:
    """The part of a tap that is used."""

    def __init__(self) -> None:
        self.container = ""
        self.said: list[str] = []

    def sink(self, line: LogLine) -> None:
        raise AssertionError(line)

    def log(self, text: str) -> None:
        self.said.append(text)
