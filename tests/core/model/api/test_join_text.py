"""What an operator hands to a host: a token, and whom its agent trusts."""

from __future__ import annotations

import pytest

from pilotlight_core.model.api.join_text import MOST_TRUSTED, JoinText, check_join_token, parse_join_text
from pilotlight_core.model.errors import BadInput

KEY = bytes(range(223, 255))
TOKEN = "pl_join_0a1b2c3d_" + "x-_" * 13 + "y"


@pytest.mark.parametrize("keys", [(), (KEY,), (KEY, bytes(32))])
def test_keys_stand_behind_the_token(keys: tuple[bytes, ...]) -> None:
    """And are taken off it again: a gateway is shown the token alone."""
    text = str(JoinText(TOKEN, keys))

    assert text.startswith(TOKEN)
    assert parse_join_text(text) == (TOKEN, keys)


def test_a_token_from_a_gateway_brings_no_keys() -> None:
    """What has a dot is no token, and a text of one is not made."""
    assert check_join_token(TOKEN) == TOKEN
    for text in (f"{TOKEN}.{'A' * 43}", f"{TOKEN}\n", TOKEN[:-1], ""):
        with pytest.raises(BadInput, match="what the gateway answers"):
            check_join_token(text)
    with pytest.raises(BadInput, match="a dot"):
        str(JoinText(f"{TOKEN}.{'A' * 43}", (KEY,)))


@pytest.mark.parametrize("behind", ["", "short", "*" * 43, "A" * 44, ".".join(["A" * 43] * (MOST_TRUSTED + 1))])
def test_a_text_that_was_cut_or_changed_is_refused(behind: str) -> None:
    """Before a gateway is asked: the token is not used up."""
    with pytest.raises(BadInput, match="no public keys"):
        parse_join_text(f"{TOKEN}.{behind}")
