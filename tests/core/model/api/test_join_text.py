"""What an operator hands to a host: a token, and whom its agent trusts."""

from __future__ import annotations

import pytest

from pilotlight_core.model.api.join_text import MOST_TRUSTED, JoinText, parse_join_text
from pilotlight_core.model.errors import BadInput

KEY = bytes(range(223, 255))
TOKEN = "pl_join_0a1b2c3d_" + "x-_" * 13 + "y"


@pytest.mark.parametrize("keys", [(), (KEY,), (KEY, bytes(32))])
def test_keys_stand_behind_the_token(keys: tuple[bytes, ...]) -> None:
    """And are taken off it again: a gateway is shown the token alone."""
    text = str(JoinText(TOKEN, keys))

    assert text.startswith(TOKEN)
    assert parse_join_text(text) == (TOKEN, keys)


@pytest.mark.parametrize("behind", ["", "short", "*" * 43, "A" * 44, ".".join(["A" * 43] * (MOST_TRUSTED + 1))])
def test_a_text_that_was_cut_or_changed_is_refused(behind: str) -> None:
    """Before a gateway is asked: the token is not used up."""
    with pytest.raises(BadInput, match="no public keys"):
        parse_join_text(f"{TOKEN}.{behind}")
