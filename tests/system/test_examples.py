"""The examples, as their READMEs tell: deployed and called from the command line, over HTTP and with the SDK."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import pilotlight
from tests.system.support.events import events_of
from tests.system.support.platform import Platform
from tests.system.support.sample_apps import EXAMPLES, deployed
from tests.waiting import wait_until

TOLERANCE = 1e-4


def function(client: pilotlight.Client, app: str, name: str, method: str = "") -> Any:
    """A deployed function, called through the given client."""
    return pilotlight.Function.from_name(app, name, method=method).options(client=client)


@pytest.fixture(scope="module")
def hello(platform: Platform) -> Iterator[str]:
    """What deploying it printed."""
    with deployed(platform, EXAMPLES / "hello" / "app.py") as printed:
        yield printed


@pytest.fixture(scope="module")
def stream(platform: Platform) -> Iterator[str]:
    with deployed(platform, EXAMPLES / "stream" / "app.py") as printed:
        yield printed


@pytest.fixture(scope="module")
def embeddings(platform: Platform) -> Iterator[str]:
    with deployed(platform, EXAMPLES / "embeddings" / "app.py") as printed:
        yield printed


@pytest.fixture(scope="module")
def reference() -> list[dict[str, Any]]:
    """Texts and the vectors that another implementation computed."""
    rows: list[dict[str, Any]] = json.loads((EXAMPLES / "embeddings" / "reference.json").read_text())["texts"]
    return rows


def test_the_curl_line_that_deploy_prints_works(platform: Platform, hello: str) -> None:
    """It is run as it stands, in a shell that has the key."""
    line = next(line for line in hello.splitlines() if line.strip().startswith("curl") and "hello.greet" in line)
    env = {**os.environ, "PILOTLIGHT_API_KEY": platform.key}

    answer = subprocess.run(["sh", "-c", f"{line} -sS"], env=env, capture_output=True, check=True, timeout=60)

    assert json.loads(answer.stdout)["output"] == "Hello, world!"


def test_hello_is_answered_whichever_way_it_is_called(
    platform: Platform, client: pilotlight.Client, hello: str
) -> None:
    """HTTP, the command line, `.remote()` and `.map()` say the same."""
    assert platform.output("hello.greet", name="Ada") == "Hello, Ada!"
    assert "Hello, Ada!" in platform.cli("call", "hello.greet", "name=Ada").stdout
    assert function(client, "hello", "greet").remote(name="Ada") == "Hello, Ada!"
    assert list(function(client, "hello", "add").map(range(20), range(20))) == list(range(0, 40, 2))


def test_what_hello_prints_is_in_its_log(platform: Platform, hello: str) -> None:
    """The line, the function it is of, and the call that printed it."""
    call = platform.answer("hello.greet", name="Grace")["id"]

    line = wait_until(
        lambda: next((line for line in platform.logs("hello", "greet") if line["call"] == call), None),
        "the line is logged",
    )

    assert (line["text"], line["stream"], line["function"]) == ("greeting Grace", "stdout", "greet")
    assert "greeting Grace" in platform.cli("logs", "hello.greet").stdout


def test_a_stream_arrives_word_by_word(platform: Platform, stream: str) -> None:
    """As server-sent events: the stages, each word by itself, and a result that says what it cost."""
    told = list(events_of(platform, "stream.words", text="one two three", pause_ms=10.0))

    chunks = [event.data for event in told if event.name == "chunk"]
    assert [chunk["seq"] for chunk in chunks] == [1, 2, 3]
    assert [chunk["value"]["word"] for chunk in chunks] == ["one", "two", "three"]
    assert told[-1].name == "result"
    assert told[-1].data["output"] is None
    assert told[-1].data["usage"]["ns"] > 0


def test_a_stream_is_a_generator_and_a_command(platform: Platform, client: pilotlight.Client, stream: str) -> None:
    """`.remote_gen()` iterates over it, and `pilotlight call` prints it."""
    words = function(client, "stream", "words").remote_gen(text="one two", pause_ms=1.0)

    assert [chunk["word"] for chunk in words] == ["one", "two"]
    assert "two" in platform.cli("call", "stream.words", "text=one two", "pause_ms=1").stdout


def test_vectors_equal_the_reference(
    client: pilotlight.Client, embeddings: str, reference: list[dict[str, Any]]
) -> None:
    """Through the whole path, and whatever batches they were computed in."""
    vectors = list(function(client, "embeddings", "MiniLM", "embed").map([row["text"] for row in reference]))

    for row, vector in zip(reference, vectors, strict=True):
        assert max(abs(a - b) for a, b in zip(row["vector"], vector, strict=True)) < TOLERANCE


def test_search_finds_the_meaning(platform: Platform, embeddings: str) -> None:
    """The best match shares no word with the question that would give it away."""
    documents = ["Refunds are paid within two weeks.", "The sky is blue.", "Bring your own lunch."]

    found = platform.output(
        "embeddings.MiniLM", "search", query="How do I get my money back?", documents=documents, top_k=2
    )

    assert len(found) == 2
    assert found[0]["text"] == documents[0]
    assert found[0]["score"] > 0.3 > found[1]["score"]


def test_texts_that_arrive_together_are_computed_together(platform: Platform, embeddings: str) -> None:
    """Of 64 callers at once nearly all share a batch, and each is told with how many."""
    platform.output("embeddings.MiniLM", "embed", text="ready")
    with ThreadPoolExecutor(64) as callers:
        answers = list(
            callers.map(lambda n: platform.answer("embeddings.MiniLM", "embed", text=f"text {n}"), range(64))
        )

    sizes = [answer["usage"]["batch_size"] for answer in answers]
    assert max(sizes) >= 8
    assert sum(size > 1 for size in sizes) > 32
    assert all(len(answer["output"]) == 384 for answer in answers)
