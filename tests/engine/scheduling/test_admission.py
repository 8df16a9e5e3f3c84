"""What is refused before it touches anything."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_engine.engine_port import Capabilities, EngineRefusal, Sampling
from pilotlight_engine.scheduling.admission import check_ids, check_request
from tests.engine.generations import request

CAPABILITIES = Capabilities(
    architecture="Sim",
    vocabulary=100,
    max_sequence=64,
    max_running=4,
    kv_tokens=48,
    page=16,
    lora=True,
    prefix_cache=True,
)


def test_what_can_run_is_taken() -> None:
    """To the last token of the room."""
    check_request(request("a", [99] * 40, 8, adapter="known", logprobs=20), CAPABILITIES, ("known",))


@pytest.mark.parametrize(
    ("asked", "kind", "field"),
    [
        ({"prompt_ids": ()}, "bad_tokens", "prompt"),
        ({"prompt_ids": (100,)}, "bad_tokens", "prompt_ids"),
        ({"prompt_ids": (1, -1)}, "bad_tokens", "prompt_ids"),
        ({"prefix_out": (1 << 40,)}, "bad_tokens", "prefix_out"),
        ({"prefix_out": (1,) * 9}, "bad_tokens", "prefix_out"),
        ({"prompt_ids": (1,) * 64}, "too_long", "prompt"),
        ({"prompt_ids": (1,) * 60}, "too_long", "max_tokens"),
        ({"prompt_ids": (1,) * 41}, "no_room", "max_tokens"),
        ({"max_new": 0}, "too_long", "max_tokens"),
        ({"adapter": "other"}, "no_adapter", "adapter"),
        ({"sampling": Sampling(temperature=-1)}, "bad_tokens", "temperature"),
        ({"sampling": Sampling(temperature=float("nan"))}, "bad_tokens", "temperature"),
        ({"sampling": Sampling(top_p=0)}, "bad_tokens", "top_p"),
        ({"sampling": Sampling(top_p=float("nan"))}, "bad_tokens", "top_p"),
        ({"sampling": Sampling(top_k=-1)}, "bad_tokens", "top_k"),
        ({"sampling": Sampling(seed=1 << 63)}, "bad_tokens", "seed"),
        ({"logprobs": 21}, "bad_tokens", "logprobs"),
        ({"weight": 0.0}, "bad_tokens", "weight"),
        ({"weight": float("nan")}, "bad_tokens", "weight"),
    ],
)
def test_what_could_only_do_harm_is_refused(asked: dict[str, Any], kind: str, field: str) -> None:
    """With its field, and what is expected."""
    with pytest.raises(EngineRefusal) as refused:
        check_request(request("a", **{"prompt": (1,), **_renamed(asked)}), CAPABILITIES, ("known",))

    assert (refused.value.kind, refused.value.field) == (kind, field)


def test_an_engine_without_adapters_says_so() -> None:
    """By its architecture."""
    capabilities = Capabilities(
        architecture="Plain", vocabulary=9, max_sequence=64, max_running=1, kv_tokens=64, page=16, lora=False,
        prefix_cache=False,
    )  # fmt: skip
    with pytest.raises(EngineRefusal, match="Plain takes no adapters"):
        check_request(request("a", adapter="any"), capabilities, ("any",))


def test_the_wrong_id_is_named() -> None:
    """The first of them."""
    with pytest.raises(EngineRefusal, match="7 is no token: ids are from 0 to 4"):
        check_ids((1, 7, 9), 5, "input")


def _renamed(asked: dict[str, Any]) -> dict[str, Any]:
    return {"prompt" if name == "prompt_ids" else name: value for name, value in asked.items()}
