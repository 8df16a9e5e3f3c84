"""What a function counts of its calls."""

from __future__ import annotations

from collections.abc import Sequence

from pilotlight.definitions.errors import Misuse
from pilotlight_core.model.messages.running_code import COUNTING, add_units


def count_units(**counts: int | Sequence[int]) -> None:
    """Count what the running call used: it is on its receipt, and in the platform's ledger.

    The names are `prompt_tokens`, `completion_tokens`, `cached_tokens`, `images`, `seconds` and `custom`; each count is
    a whole number from 0 to 2**53. Repeated counts add up. A batched function gives a list of each, with a number for
    each of its items. Outside the platform nothing is counted.

    Raises:
        Misuse: names the unit that is wrong; nothing was counted then.
    """
    if why := add_units(COUNTING.get(), counts):
        raise Misuse(f"pilotlight.count_units(): {why}.", field=next(iter(counts), ""))
