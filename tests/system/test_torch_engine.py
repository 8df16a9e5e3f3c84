"""A model with random weights, pushed, served on torch, and killed in the middle of an answer."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.engine.text.small_tokenizer import small_tokenizer
from tests.engine.transformer.tiny_models import save_model
from tests.system.support.events import events_of
from tests.system.support.platform import Platform
from tests.system.support.sample_apps import APPS, deployed
from tests.system.test_engines import guests

ASKED: dict[str, Any] = {"prompt": "the reader reads", "max_tokens": 200, "ignore_eos": True, "seed": 5}


@pytest.mark.long  # its two containers import transformers
def test_a_model_that_was_pushed_answers_and_goes_on_elsewhere(platform: Platform, tmp_path: Path) -> None:
    small_tokenizer(tmp_path)
    save_model("llama", tmp_path, vocab_size=300)
    platform.cli("weights", "push", "tiny-llama", str(tmp_path))
    with deployed(platform, APPS / "torched" / "app.py"):
        expected = platform.output("torched.chat", method="generate", **ASKED)
        chunks = []
        for event in events_of(platform, "torched.chat", method="generate", **ASKED):
            if event.name == "chunk":
                chunks.append(event.data["value"])
            if event.name == "chunk" and len(chunks) == 20:
                (pid,) = guests(platform, "torched")
                os.kill(pid, signal.SIGKILL)

    for key in ("text", "token_ids"):
        assert [part for chunk in chunks for part in chunk[key]] == [part for chunk in expected for part in chunk[key]]
    assert chunks[-1]["usage"]["completion_tokens"] == 200
    platform.cli("weights", "rm", "tiny-llama")
