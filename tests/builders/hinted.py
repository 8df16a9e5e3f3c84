"""Types that functions hint at: a dataclass, and a model that validates itself."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.0


class Model:
    """What a pydantic model looks like to us."""

    def __init__(self, value: Any) -> None:
        self.value = value

    @classmethod
    def model_validate(cls, value: Any) -> Model:
        if value == "bad":
            raise ValueError("bad is not allowed")
        return cls(value)
