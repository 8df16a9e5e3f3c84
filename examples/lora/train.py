"""Trains adapters of the chat example's model, on a CPU: `python -m examples.lora.train MODEL FOLDER`.

The folder then has one of each style, as PEFT saves them: adapter_config.json and adapter_model.safetensors.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from tokenizers import Tokenizer
from transformers import LlamaForCausalLM

from examples.chat.train import SEED, as_text, progress_of, train
from examples.lora.styles import STYLES

RANK, ALPHA = 16, 32
LAYERS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def train_adapter(
    model: Path, pairs: Iterable[tuple[str, str]], folder: Path, seconds: float, steps: int | None
) -> float:
    """Teach an adapter these answers, while the model stays as it is; returns the last loss."""
    base: Any = LlamaForCausalLM.from_pretrained(model)
    torch.manual_seed(SEED)
    adapted: Any = get_peft_model(base, LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=LAYERS))
    known = list(pairs)
    random.seed(SEED)
    random.shuffle(known)
    tokens = torch.tensor(Tokenizer.from_file(str(model / "tokenizer.json")).encode(as_text(known)).ids)
    taught, whole = adapted.get_nb_trainable_parameters()
    print(f"{folder.name}: {len(known)} answers, {taught:,} of {whole:,} parameters", flush=True)
    loss = train(adapted, tokens, progress_of(seconds, steps))
    adapted.save_pretrained(folder)
    return loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="the folder that examples.chat.train wrote")
    parser.add_argument("folder", type=Path, help="where the adapters are written, a folder each")
    parser.add_argument("--seconds", type=float, default=60, help="how long each of them is trained")
    parser.add_argument("--steps", type=int, help="how many steps instead: the same adapters on any machine")
    asked = parser.parse_args()
    for name, style in STYLES.items():
        loss = train_adapter(asked.model, style(), asked.folder / name, asked.seconds, asked.steps)
        print(f"An adapter with a loss of {loss:.2f}. Push it: pilotlight weights push {name} {asked.folder / name}")


if __name__ == "__main__":
    main()
