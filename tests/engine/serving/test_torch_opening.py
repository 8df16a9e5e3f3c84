"""A torch engine of weights, behind an engine function."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import peft
import pytest
import torch
import transformers

from pilotlight import Torch
from pilotlight_core.model.engines.engine_spec import EngineKind, EngineSpec
from pilotlight_engine.serving.engine_opening import MODELS_VARIABLE
from pilotlight_engine.serving.torch_opening import open_torch
from tests.engine.serving.engine_guest import engine_guest
from tests.engine.serving.test_engine_function import check_goes_on
from tests.engine.text.small_tokenizer import small_tokenizer
from tests.engine.transformer.tiny_models import save_model

ASKED: dict[str, Any] = {"prompt": "the reader reads", "max_tokens": 40, "ignore_eos": True, "seed": 5}


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of weights, as containers have it."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    small_tokenizer(folder)
    save_model("llama", folder, vocab_size=300)
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path))
    return folder


def test_the_engine_has_the_bounds_that_its_function_says(models: Path) -> None:
    spec = EngineSpec(kind=EngineKind.TORCH, weights="tiny", max_sequences=3, max_sequence=64, dtype="fp32")
    able = open_torch(spec, models, ()).capabilities()

    assert (able.architecture, able.max_running, able.max_sequence) == ("LlamaForCausalLM", 3, 64)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
async def test_an_answer_of_a_model_that_is_cut_goes_on(models: Path, temperature: float) -> None:
    """In another container, mid-character too: its text is bytes of a model with random weights."""
    asked = {**ASKED, "temperature": temperature}
    async with engine_guest(Torch("tiny")) as first:
        whole = await first.run(**asked)
    assert len(whole.token_ids) == 40
    for cut in (1, len(whole.chunks) // 2, len(whole.chunks) - 1):
        async with engine_guest(Torch("tiny")) as second:
            had, start = whole.cut(cut)
            rest = await second.run(start=start, **asked)
        check_goes_on(whole, had, start, rest)


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft asks transformers for it
async def test_adapters_of_weights_are_mixed_in_one_batch(models: Path) -> None:
    """Each call has the one that it names, and none the others'."""
    save_adapter(models, models.parent / "legal")
    asked = {**ASKED, "temperature": 0.0}
    async with engine_guest(Torch("tiny"), adapters=["legal"]) as guest:
        alone = [await guest.run(f"call_{name}", adapter=name, **asked) for name in ("", "legal")]
        assert not alone[1].chunks[-1]["usage"]["cached_tokens"]  # prefixes are of one adapter
        names = ("", "legal", "")
        begun = [guest.begin(f"mixed_{at}", adapter=name, **asked) for at, name in enumerate(names)]
        for _, task in begun:
            await task
        assert guest.engine.stats().adapters == ("legal",)

    texts = [call.text for call, _ in begun]
    assert texts == [alone[0].text, alone[1].text, alone[0].text]
    assert alone[0].text != alone[1].text


def save_adapter(model: Path, folder: Path) -> None:
    """A LoRA adapter with random weights."""
    torch.manual_seed(3)
    config = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    base = transformers.LlamaForCausalLM.from_pretrained(model)
    peft.get_peft_model(base, config).save_pretrained(folder)
