"""`pilotlight whoami`."""

from __future__ import annotations

import time

from tests.sdk.cli.shell import invoke, run
from tests.sdk.scripted import ScriptedPlatform, answer


def test_who_has_a_key(platform: ScriptedPlatform) -> None:
    """And which sort of key that is."""
    caller = {"tenant": "ops", "key": "8c1f0eXY", "scopes": ["operator"], "expires_at": time.time() + 7_300}
    platform.will("GET", "/v1/whoami", answer(caller | {"break_glass": True}))
    done = invoke("whoami")
    assert done.stdout == f"the key 8c1f0eXY of ops may operator at {platform.url}.\n"
    assert done.stderr == "It is a break-glass key: each request with it is audited.\nIt ends in 2h.\n"


def test_who_is_logged_in(platform: ScriptedPlatform) -> None:
    """By whose word, and under which name in reports."""
    caller = {"tenant": "acme", "key": "oidc-corp-1", "scopes": ["invoke"], "issuer": "corp", "subject": "ada"}
    platform.will("GET", "/v1/whoami", answer(caller | {"expires_at": time.time()}))
    assert run("whoami") == f"ada (corp) of acme may invoke at {platform.url}.\n"
    assert "oidc-corp-1" in invoke("whoami").stderr
