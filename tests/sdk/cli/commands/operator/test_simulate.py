"""`pilotlight simulate`: a process of its own, which gets every option."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight.cli.commands.operator import simulate
from tests.sdk.cli.shell import invoke


def test_every_option_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was given; its exit code is the command's."""
    got: list[Any] = []

    def run_command(name: str, words: list[str], *, as_json: bool) -> int:
        got.extend((name, words, as_json))
        return 3

    monkeypatch.setattr(simulate, "run_command", run_command)
    words = ["--generate=diurnal", "--generate=dying=2", "--fleet=T4:2", "--fleet=CPU:4", "--set=STEP_PART=0.5"]
    words += ["--count=5", "--rate=2.5", "--hours=2.0", "--load-s=3.0", "--slots=4", "--vary=window_s=1,2", "--json"]

    done = invoke("simulate", *words)

    assert done.exit_code == 3
    assert got[0] == "simulate"
    assert set(got[1]) == set(words)
    assert got[2] is True
