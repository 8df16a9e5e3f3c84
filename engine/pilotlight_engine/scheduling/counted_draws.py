"""Random numbers of (seed, position, token): nothing is drawn in order, so nothing depends on what else is drawn.

A token is the greatest of `logit / temperature + gumbel(seed, position, token)` ("Gumbel-max": such a token has exactly
the distribution of the softmax). A sequence that was cut goes on elsewhere with the same tokens, on any device: the
numbers come from integer arithmetic (the finaliser of SplitMix64: Steele, Lea and Flood, "Fast Splittable Pseudorandom
Number Generators", OOPSLA 2014), and not from a generator with a state.
"""

from __future__ import annotations

GOLDEN = 0x9E3779B97F4A7C15
FIRST = 0xBF58476D1CE4E5B9
SECOND = 0x94D049BB133111EB
MASK = (1 << 64) - 1


def mixed(value: int) -> int:
    """64 bits, each of which depends on all 64 bits of `value`."""
    value = ((value ^ (value >> 30)) * FIRST) & MASK
    value = ((value ^ (value >> 27)) * SECOND) & MASK
    return value ^ (value >> 31)


def position_key(seed: int, position: int) -> int:
    """The key of all draws at an absolute position of a sequence with this seed."""
    return mixed((mixed((seed * GOLDEN + GOLDEN) & MASK) + (position + 1) * GOLDEN) & MASK)


def drawn_bits(key: int, token: int) -> int:
    """The 64 random bits of a token, under the key of its position."""
    return mixed((key + (token + 1) * GOLDEN) & MASK)
