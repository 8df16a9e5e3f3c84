"""What the node check says of one guarantee."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class GuaranteeCheck:
    """One guarantee: whether it holds here, what was seen, and the consequence for the operator if it does not."""

    name: str
    ok: bool
    detail: str
    consequence: str
