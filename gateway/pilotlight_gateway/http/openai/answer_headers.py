"""Headers that clients of OpenAI's API know."""

from __future__ import annotations

import re
from collections.abc import Iterable

HeaderLines = list[tuple[bytes, bytes]]
IGNORED = b"pilotlight-ignored"
"""Names the fields of a request that nothing goes by."""
PROCESSING = b"openai-processing-ms"
PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def ignored_header(names: Iterable[str]) -> HeaderLines:
    """The header that names fields; none if there are none that a header can hold."""
    plain = [name for name in dict.fromkeys(names) if PLAIN.fullmatch(name)]
    return [(IGNORED, ", ".join(plain).encode())] if plain else []


def processing_header(seconds: float) -> HeaderLines:
    """How long the platform took until it answered."""
    return [(PROCESSING, b"%d" % round(seconds * 1000))]
