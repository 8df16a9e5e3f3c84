"""The `openai` client against a whole platform, whose functions are its models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI

from tests.system.support.platform import Platform
from tests.system.support.sample_apps import APPS, deployed
from tests.waiting import wait_until

PARROT, LENGTHS, NONSENSE = "tests/parrot-1.5", "tests/lengths", "tests/nonsense"


@pytest.fixture(scope="module")
def client(platform: Platform) -> Iterator[OpenAI]:
    """A client as anybody has it, and an app whose functions are served."""
    with (
        deployed(platform, APPS / "served" / "app.py"),
        OpenAI(base_url=f"{platform.url}/v1", api_key=platform.key) as client,
    ):
        yield client


def says(text: str) -> Any:
    return [{"role": "user", "content": text}]


def test_models_speak_and_make_vectors(platform: Platform, client: OpenAI, stranger_key: str) -> None:
    """A chat whole and streamed, a response, and embeddings; nobody else sees the models."""
    whole = client.chat.completions.create(model=PARROT, messages=says("one two three"), max_tokens=2)
    stream = client.chat.completions.create(
        model="served.tells", messages=says("one two"), stream=True, stream_options={"include_usage": True}
    )
    pieces = list(stream)
    response = client.responses.create(model=PARROT, input="one two three")
    vectors = client.embeddings.create(model=f"{LENGTHS}:small", input=["one", "two three"])

    assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == ("one two ", "length")
    assert "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices) == "one two "
    assert pieces[-1].usage is not None
    assert pieces[-1].usage.total_tokens == 4
    assert response.output_text == "one two three "
    assert [one.embedding for one in vectors.data] == [[3.0, 1.0], [9.0, 2.0]]
    assert [model.id for model in client.models.list()] == [LENGTHS, f"{LENGTHS}:small", NONSENSE, PARROT]
    call = whole._request_id
    assert platform.http.get(f"/v1/calls/{call}").json()["version"] == "served.tells@v1"

    with OpenAI(base_url=f"{platform.url}/v1", api_key=stranger_key) as stranger:
        assert list(stranger.models.list()) == []
        with pytest.raises(openai.NotFoundError):
            stranger.chat.completions.create(model=PARROT, messages=says("one"))


def test_an_engine_is_a_model_without_code(client: OpenAI) -> None:
    """Streamed and whole it says the same; what it cannot do is refused by its own schema."""
    asked: Any = {"model": NONSENSE, "messages": says("hi"), "seed": 3, "max_tokens": 8, "logprobs": True}
    whole = client.chat.completions.create(**asked)
    pieces = list(client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    said = "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)
    text = client.completions.create(model=NONSENSE, prompt="Once", max_tokens=4, seed=3)
    vectors = client.embeddings.create(model=NONSENSE, input=["one", "two"])

    assert whole.choices[0].message.content == said
    assert said
    assert whole.usage is not None
    assert pieces[-1].usage is not None  # of which some were cached by then
    assert whole.usage.total_tokens == pieces[-1].usage.total_tokens
    assert whole.choices[0].logprobs is not None
    assert whole.system_fingerprint == "served.chat@v1"
    assert text.usage is not None
    assert text.usage.completion_tokens <= 4
    assert len(vectors.data[0].embedding) == 16
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(**asked | {"temperature": -1})
    assert refused.value.param == "temperature"
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(**asked | {"model": f"{NONSENSE}:legal"})


def test_a_file_of_requests_becomes_a_file_of_answers(client: OpenAI) -> None:
    """And one of errors, of those that went wrong alone."""
    bodies = [{"model": PARROT, "messages": says(f"say {number}")} for number in range(3)]
    bodies.append({"model": PARROT, "messages": []})
    lines = [
        {"custom_id": f"row-{number}", "method": "POST", "url": "/v1/chat/completions", "body": body}
        for number, body in enumerate(bodies)
    ]
    file = client.files.create(file=("in.jsonl", "\n".join(map(json.dumps, lines)).encode()), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")

    def over() -> Any:
        found = client.batches.retrieve(batch.id)
        return found if found.status != "in_progress" else None

    done = wait_until(over, "the batch is over")
    answers = {line["custom_id"]: line["response"]["body"] for line in read(client, done.output_file_id)}
    errors = {line["custom_id"]: line["error"]["code"] for line in read(client, done.error_file_id)}

    assert (done.status, done.request_counts.completed, done.request_counts.failed) == ("completed", 3, 1)
    said = {name: body["choices"][0]["message"]["content"] for name, body in answers.items()}
    assert said == {f"row-{number}": f"say {number} " for number in range(3)}
    assert answers["row-0"]["usage"]["total_tokens"] == 4
    assert errors == {"row-3": "function_raised"}


def read(client: OpenAI, file_id: str | None) -> list[dict[str, Any]]:
    """The lines of a file."""
    assert file_id is not None
    return [json.loads(line) for line in client.files.content(file_id).text.splitlines()]
