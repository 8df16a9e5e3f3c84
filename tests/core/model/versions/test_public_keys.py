"""Public keys as PEM, as `openssl pkey -pubout` writes them."""

from __future__ import annotations

import pytest

from pilotlight_core.model.versions.public_keys import public_key_of, public_keys_of, public_pem

ONE, OTHER = bytes(range(32)), bytes(range(1, 33))
PEM = b"""\
-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=
-----END PUBLIC KEY-----
"""


def test_keys_are_read_as_they_were_written() -> None:
    """One, or several behind each other."""
    assert public_pem(ONE) == PEM
    assert public_key_of(PEM) == ONE
    assert public_keys_of(public_pem(ONE, OTHER)) == (ONE, OTHER)


@pytest.mark.parametrize(
    "text", [b"", b"words", PEM + b"words", PEM.replace(b"MCow", b"MCoz"), PEM.replace(b"MCow", b"M*ow")]
)
def test_what_is_no_list_of_keys_is_refused(text: bytes) -> None:
    """Whatever stands before, behind or between them too."""
    with pytest.raises(ValueError, match=r".+"):
        public_keys_of(text)
