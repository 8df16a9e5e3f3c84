"""Of the double."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class LoRARequest:
    """An adapter."""

    lora_name: str
    lora_int_id: int
    lora_path: str
