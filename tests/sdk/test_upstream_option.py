"""`upstream=` of a function."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight import App, Upstream, concurrent
from pilotlight.definitions.errors import OptionError

API = Upstream("https://api.example.com/v1/rank", key="rank-key", concurrency=8)
app = App("fronts")


@app.gpu_function(upstream=API, network=["other.example.com:443"], secrets={"OTHER": "other"})
async def rank(text: str) -> float:
    """As a front has it."""
    found: float = await API.call({"text": text})
    return found


@app.gpu_function(upstream=API)
@concurrent(max_inputs=5)
async def few(text: str) -> float:
    """With a bound of its own."""
    found: float = await API.call({"text": text})
    return found


def test_a_function_reaches_the_api_and_has_its_key() -> None:
    """Beside what it names itself; it runs as many calls as the API may take."""
    assert rank.spec.network == ("other.example.com:443", "api.example.com:443")
    assert rank.spec.secrets == {"OTHER": "other", "UPSTREAM_KEY": "rank-key"}
    assert (rank.spec.max_inputs, few.spec.max_inputs) == (16, 5)


async def coroutine() -> None: ...


def plain() -> None: ...


@pytest.mark.parametrize(
    ("target", "options", "why"),
    [
        (coroutine, {"upstream": "https://api.example.com/"}, "expected Upstream"),
        (plain, {"upstream": API}, "asynchronous"),
        (coroutine, {"upstream": API, "secrets": ["A"]}, "mapping"),
    ],
)
def test_what_makes_no_sense_is_refused(target: Any, options: dict[str, Any], why: str) -> None:
    """With what to write instead."""
    with pytest.raises(OptionError, match=why):
        App("other").gpu_function(**options)(target)
