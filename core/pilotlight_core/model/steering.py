"""Characters that steer a terminal, or make text read as what it is not: for parts of regular expressions."""

from __future__ import annotations

CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
"""All but tab and line feed."""
MISLEADING = (
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # line separators, and whatever turns the direction
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f"  # annotations, halves of characters, invisible tags
)
