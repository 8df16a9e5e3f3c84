"""Keys are written as NATS writes them, and what is none is refused."""

from __future__ import annotations

import pytest

from pilotlight_core.bus.nkeys import BadNkey, Nkey, NkeyKind, is_public_key, verify

#: Of the documentation of NATS.
SEED = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
PUBLIC = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"


def test_a_seed_of_nats_gives_its_public_key() -> None:
    """As their own tools say it, and back."""
    key = Nkey.from_seed(SEED, NkeyKind.USER)
    assert key.public == PUBLIC
    assert key.seed == SEED


@pytest.mark.parametrize(("kind", "letter"), [(NkeyKind.ACCOUNT, "A"), (NkeyKind.USER, "U")])
def test_who_has_the_seed_can_sign(kind: NkeyKind, letter: str) -> None:
    """And nobody else."""
    key, other = Nkey.generate(kind), Nkey.generate(kind)
    signed = key.sign(b"made up")

    assert key.public.startswith(letter)
    assert key.seed.startswith(f"S{letter}")
    assert is_public_key(key.public, kind)
    assert verify(Nkey.from_seed(key.seed, kind).public, b"made up", signed)
    assert not verify(key.public, b"made up differently", signed)
    assert not verify(other.public, b"made up", signed)
    assert not verify("no key", b"made up", signed)


@pytest.mark.parametrize(
    "text", ["", "S", SEED[:-1], f"{SEED}A", SEED.replace("Q", "W", 1), PUBLIC, "1" * 58, "ä" * 58]
)
def test_what_is_no_seed_is_refused(text: str) -> None:
    """Cut off, mistyped, public, or of another alphabet."""
    with pytest.raises(BadNkey):
        Nkey.from_seed(text, NkeyKind.USER)
    assert not is_public_key(text, NkeyKind.ACCOUNT)


def test_a_seed_of_another_kind_is_refused() -> None:
    """An account's is no user's."""
    with pytest.raises(BadNkey):
        Nkey.from_seed(SEED, NkeyKind.ACCOUNT)
    assert not is_public_key(PUBLIC, NkeyKind.ACCOUNT)
