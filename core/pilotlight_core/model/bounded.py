"""Types of what a node sends, with bounds that no honest agent reaches.

A node may be hostile. The decoder refuses a message with a number or a length beyond these bounds, so no receiver
has to check for NaN, for infinity, for negative times, or for lists without end.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Count = Annotated[int, Meta(ge=0, le=2**40)]
Rising = Annotated[int, Meta(ge=0, le=2**62)]
"""Numbers that rise: epochs, sequences, nanoseconds."""
Bytes = Annotated[int, Meta(ge=0, le=2**60)]
Ppm = Annotated[int, Meta(ge=1, le=10**8)]
"""Of one device or of several together."""
Duration = Annotated[float, Meta(ge=0, le=1e12)]
"""Seconds or milliseconds, by the field's name; finite."""
ShortText = Annotated[str, Meta(max_length=1_024)]
"""Names and ids; the longest is a slice of several GPUs."""
StepTimes = Annotated[dict[Annotated[str, Meta(max_length=64)], Duration], Meta(max_length=32)]
"""The steps of a start."""
MOST_HELD = 16_384
"""Calls in one container."""
MOST_SLICES = 16_384
MOST_CONTAINERS = 16_384
MOST_DEVICES = 1_024
MOST_BASES = 64
"""Base environments of a node."""
MOST_FEATURES = 64
MOST_ENVIRONMENTS = 4_096
"""Built ones that a node reports."""

Units = Annotated[dict[ShortText, Annotated[int, Meta(ge=0, le=2**53)]], Meta(max_length=16)]
"""Units of a call by name: whole numbers that every reader of JSON has exactly."""
