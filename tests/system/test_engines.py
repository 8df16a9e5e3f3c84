"""Engine functions over HTTP: deployed without code, streamed, cancelled, killed, and billed once."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

import pilotlight
from tests.system.support.events import Told, events_of
from tests.system.support.platform import Platform
from tests.system.support.processes import descendants
from tests.system.support.sample_apps import APPS, deployed
from tests.waiting import wait_until

ASKED: dict[str, Any] = {"prompt": "Once upon a time", "max_tokens": 120, "ignore_eos": True, "seed": 3}


@pytest.fixture(scope="module", autouse=True)
def engines(platform: Platform) -> Iterator[str]:
    with deployed(platform, APPS / "engines" / "app.py") as printed:
        yield printed


def guests(platform: Platform, app: str) -> list[int]:
    """The processes of an app's containers, as this machine numbers them: they have a file of its name."""
    found = []
    for pid in descendants(platform.pids["agent"]):
        process = Path(f"/proc/{pid}")
        try:
            if b"bwrap" not in (process / "cmdline").read_bytes() and (process / f"root/app/{app}.txt").exists():
                found.append(pid)
        except OSError:
            continue
    return found


def billed_units(platform: Platform, call: str) -> Counter[str]:
    """What all lines of a call's receipt count, once it is in the ledger."""

    def look() -> Counter[str] | None:
        answer = platform.http.get(f"/v1/calls/{call}/receipt")
        lines = answer.json()["lines"] if answer.status_code == 200 else []
        counted: Counter[str] = Counter()
        for line in lines:
            counted.update(line["units"])
        return counted or None

    return wait_until(look, "its usage is in the ledger")


def test_a_model_is_deployed_without_code_and_answers(platform: Platform) -> None:
    """Whole answers and streams say the same, and what they took is counted once."""
    whole = platform.answer("engines.chat", method="generate", **ASKED)
    chunks = whole["output"]
    assert "".join(chunk["text"] for chunk in chunks)
    assert chunks[-1]["finish_reason"] == "length"
    assert whole["usage"]["units"] == {"prompt_tokens": 16, "completion_tokens": 120}
    vectors = platform.output("engines.chat", method="embed", input=["one", "two"])
    assert [len(vector) for vector in vectors["embeddings"]] == [16, 16]
    refused = platform.call("engines.chat", method="generate", prompt="a", adapter="legal")
    assert (refused.status_code, refused.json()["code"]) == (422, "bad_input")
    assert "adapter: there is no 'legal'" in refused.json()["detail"]


def test_a_stream_whose_guest_is_killed_goes_on_and_is_billed_once(platform: Platform) -> None:
    """On the same connection, with the same text."""
    expected = platform.output("engines.chat", method="generate", **ASKED)
    told: list[Told] = []
    for event in events_of(platform, "engines.chat", method="generate", **ASKED):
        told.append(event)
        if event.name == "chunk" and event.data["seq"] == 30:
            (pid,) = guests(platform, "engines")
            os.kill(pid, signal.SIGKILL)
    chunks = [event.data["value"] for event in told if event.name == "chunk"]

    assert told[-1].name == "result", told[-1]
    assert "moving" in [event.data["name"] for event in told if event.name == "stage"]
    assert "".join(chunk["text"] for chunk in chunks) == "".join(chunk["text"] for chunk in expected)
    assert [token for chunk in chunks for token in chunk["token_ids"]] == [
        token for chunk in expected for token in chunk["token_ids"]
    ]
    units = billed_units(platform, told[-1].data["id"])
    assert (units["prompt_tokens"] + units["cached_tokens"], units["completion_tokens"]) == (16, 120)


def test_whoever_leaves_takes_the_call_out_of_the_engine(platform: Platform) -> None:
    """Hanging up is enough. The engine goes idle, and says so."""
    asked = {**ASKED, "max_tokens": 3_000}  # it hangs up before
    with closing(events_of(platform, "engines.chat", method="generate", **asked)) as events:
        assert any(event.name == "chunk" for event in events)
    wait_until(lambda: is_idle(platform), "the engine is idle")


def test_a_stock_client_that_leaves_takes_its_call_out_of_the_engine(platform: Platform) -> None:
    """Nobody comes back for a stream of OpenAI's routes, though those of engines are resumable."""
    asked: Any = {"model": "engines.chat", "messages": [{"role": "user", "content": "Once"}], "max_tokens": 3000}
    asked["extra_body"] = {"ignore_eos": True}
    with OpenAI(base_url=f"{platform.url}/v1", api_key=platform.key, max_retries=0) as client:
        stream = client.chat.completions.create(**asked, stream=True)
        call = next(iter(stream)).id.removeprefix("chatcmpl-")
        stream.close()
        wait_until(lambda: platform.http.get(f"/v1/calls/{call}").json()["state"] == "cancelled", "it is cancelled")
        wait_until(lambda: is_idle(platform), "the engine is idle")


def is_idle(platform: Platform) -> bool:
    """Whether the engine has generated, and nothing is left in it."""
    engine = platform.container_of("engines", "chat")["engine"]
    return engine is not None and engine["decode_tokens"] > 0 and not engine["running"] and not engine["kv_used"]


PACED = """
from pilotlight import SLO, App, Sim

app = App("paced")

chat = app.engine("chat", Sim(step_ms=4), slo=SLO(itl_ms=1), max_containers=2, scaledown_window=1.0, forecast=False)
"""


def test_an_engine_beyond_its_pace_gets_another_one_beside_it(platform: Platform, tmp_path: Path) -> None:
    """One call alone, to which tokens come more slowly than `slo=` says; the reason is told."""
    (tmp_path / "app.py").write_text(PACED)
    platform.deploy(tmp_path / "app.py")
    call, asked = pilotlight.call_id(), {**ASKED, "max_tokens": 3000}
    with closing(events_of(platform, "paced.chat", id=call, method="generate", **asked)) as events:
        # It is read meanwhile: an answer that nobody reads leaves its engine.
        chunks = (event for event in events if event.name == "chunk" and not event.data["seq"] % 25)
        looks = (platform.containers("paced") for _ in chunks)
        both = next((found for found in looks if len(found) == 2), [])
        assert len(both) == 2, "no other container came beside it"
        slow = max(both, key=lambda each: each["running"])
    platform.http.delete(f"/v1/calls/{call}").raise_for_status()
    assert slow["engine"]["inter_token_ms"] > 1
    told = json.loads(platform.cli("explain", "paced.chat", "--json").stdout)
    assert "pace" in json.dumps(told)
    platform.cli("app", "stop", "paced")
