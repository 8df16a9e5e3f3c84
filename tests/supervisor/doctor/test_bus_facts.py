"""The program that serves the bus."""

from __future__ import annotations

import pytest

from pilotlight_supervisor.doctor.bus_facts import (
    TESTED_BUS,
    BusProgram,
    bus_program_findings,
    read_bus_program,
    version_of,
)


def test_the_program_that_the_package_brings_is_well() -> None:
    """It is beside the interpreter."""
    program = read_bus_program()
    (line,) = bus_program_findings(program)

    assert version_of(program.version) >= TESTED_BUS
    assert line.health == "ok"


@pytest.mark.parametrize(
    ("program", "health"),
    [(BusProgram(path="", version=""), "fail"), (BusProgram(path="/usr/bin/nats-server", version="2.9.1"), "warn")],
)
def test_none_and_an_old_one_are_told_of(program: BusProgram, health: str) -> None:
    """With what brings it."""
    (line,) = bus_program_findings(program)

    assert line.health == health
    assert "pip install" in line.todo
