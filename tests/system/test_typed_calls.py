"""Values without a JSON type: sent as JSON by whoever types commands, and answers as the hints say."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

import pilotlight
from tests.command_line import program
from tests.system.support.platform import Platform
from tests.system.support.sample_apps import APPS, deployed

PATHS = {name: APPS / name / "app.py" for name in ("typed", "tensors")}


@pytest.fixture(scope="module")
def printed(platform: Platform) -> Iterator[str]:
    with deployed(platform, PATHS["typed"]) as typed, deployed(platform, PATHS["tensors"]) as tensors:
        yield typed + tensors


def imported(name: str) -> Any:
    """An app as its author's own programs import it."""
    spec = spec_from_file_location(f"{name}_app", PATHS[name])
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[f"{name}_app"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.variant
def test_every_line_that_deploy_prints_works_as_it_stands(platform: Platform, printed: str, tmp_path: Path) -> None:
    """With tensors, arrays, instants, UUIDs, decimals, bytes and dataclasses, by curl and by `pilotlight call`."""
    program(tmp_path)
    env = {**platform.env, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    lines = [line.strip() for line in printed.splitlines() if line.startswith("  ")]
    assert len(lines) == 14
    for line in lines:
        quiet = f"{line} -sS" if line.startswith("curl") else line
        done = subprocess.run(["sh", "-c", quiet], env=env, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        assert done.stdout, line
        assert '"code"' not in done.stdout, f"{line}\n{done.stdout}"


def test_a_tensor_is_sent_as_nested_lists(platform: Platform, printed: str) -> None:
    """And what is none is the caller's mistake, not an exception of the function."""
    assert platform.output("tensors.norm", vector=[3.0, 4.0]) == 5.0
    refused = platform.call("tensors.norm", vector=[[1.0], [1.0, 2.0]])
    assert (refused.status_code, refused.json()["code"]) == (422, "bad_input"), refused.text


@pytest.mark.usefixtures("printed")
def test_answers_are_what_the_hints_say(client: pilotlight.Client) -> None:
    """Live, streamed, batched, mapped and stored alike; by name they are JSON types."""
    typed, tensors = imported("typed"), imported("tensors")
    matches = [typed.Match("a", 1.0), typed.Match("b", 2.0)]
    best, scorer = typed.best.options(client=client), tensors.Scorer()

    assert best.remote(matches) == matches[1]
    assert best.options(idempotency_key="auto").remote(matches) == matches[1]
    assert list(best.map([matches[:1], matches[1:]])) == matches
    call = best.spawn(matches)
    assert call.get(timeout=60) == matches[1]
    assert pilotlight.FunctionCall.gather(call) == [matches[1]]
    assert pilotlight.FunctionCall.from_id(call.id, client=client).get() == {"text": "b", "score": 2.0}
    assert list(typed.each.options(client=client).remote_gen(["x", "y"])) == [
        typed.Match("x", 1.0), typed.Match("y", 1.0)
    ]  # fmt: skip
    assert scorer.score.options(client=client).remote("z", [1.0, 2.0]) == tensors.Match("z", 3.0)
    noon = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)
    hour = datetime.timedelta(hours=1)
    assert typed.later.options(client=client).remote(noon, hour, noon.date()) == noon + hour
    by_name = pilotlight.Function.from_name("typed", "best").options(client=client)
    assert by_name.remote(matches=matches) == {"text": "b", "score": 2.0}
