"""The command with which an operator rotates keys."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from pilotlight_core.host.key_sets import KeySet
from pilotlight_core.host.signing import Signer, keys_in
from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.keyset_command import instant, main
from pilotlight_gateway.operator_key import KEY_SET, load_key_set


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """A gateway's folder with its first key."""
    Signer.load_or_create(tmp_path / "keys")
    return tmp_path / "keys"


def read(folder: Path) -> KeySet:
    found = load_key_set(str(folder / KEY_SET))
    assert found is not None
    return found.check()


def said(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_a_rotation_is_a_new_key_an_old_one_that_expires_and_then_a_revocation(
    keys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next set builds on the last one, and is later."""
    (old,), operator, at = keys_in(keys), tmp_path / "operator", time.time()
    assert main(["vouch", str(operator), f"--key={keys}", "--json"]) == 0
    assert [each["id"] for each in said(capsys)["keys"]] == [old]
    assert main(["new", str(keys), "--json"]) == 0
    made = said(capsys)
    assert set(keys_in(keys)) == {old, made["id"]}

    words = ["vouch", str(operator), f"--key={made['public']}", f"--retire={old}", "--after=+2d", "--json"]
    assert main(words) == 0
    first = read(operator)
    assert first.signing_order(keys_in(keys), time.time()) == [made["id"], old]
    assert first.fault(old, at + 3 * 86_400).startswith(f"The key {old} has expired on")
    assert main(["vouch", str(operator), f"--revoke={old[:8]}", "--reason=stolen"]) == 0
    second = read(operator)
    assert second.serial > first.serial
    assert second.names() == (made["id"],)
    assert second.fault(old, at).endswith(": stolen.")
    assert f"{old} was revoked on" in capsys.readouterr().out


def test_a_key_may_count_from_a_day_on(keys: Path, tmp_path: Path) -> None:
    """Until then the present one signs."""
    (old,), operator = keys_in(keys), tmp_path / "operator"
    main(["vouch", str(operator), f"--key={keys}"])
    main(["new", str(keys)])
    (new,) = set(keys_in(keys)) - {old}
    assert main(["vouch", str(operator), f"--key={keys / keys_in(keys)[new]}.pub", "--not-before=+1d"]) == 0

    now = time.time()
    assert read(operator).signing_order(keys_in(keys), now) == [old]
    assert read(operator).signing_order(keys_in(keys), now + 2 * 86_400) == [new, old]


def test_what_would_leave_a_platform_without_a_key_is_refused(
    keys: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And so is what is no key, no set and no instant."""
    (old,), operator = keys_in(keys), tmp_path / "operator"
    main(["vouch", str(operator), f"--key={keys}"])
    for words, why in (
        ([f"--revoke={old}"], "No key of that set counts now"),
        (["--retire=0123456789"], "is no key of the set; there are"),
        ([f"--key={tmp_path / 'nowhere'}"], "There is no public key"),
        ([f"--retire={old}", "--after=soon"], "--after 'soon': expected +14d"),
    ):
        assert main(["vouch", str(operator), *words]) == 1
        assert why in capsys.readouterr().err
    main(["new", str(keys)])
    main(["vouch", str(operator), f"--key={keys}", f"--revoke={old}"])
    assert main(["vouch", str(operator), f"--key={keys}"]) == 1
    assert "was revoked: make another one" in capsys.readouterr().err
    (operator / KEY_SET).write_text("{}")
    assert main(["vouch", str(operator), f"--key={keys}"]) == 1


def test_instants_are_later_by_so_much_or_days() -> None:
    """In UTC."""
    assert instant("+6h", 10.0, "--after") == 10.0 + 6 * 3_600
    assert instant("1970-01-02", 0.0, "--after") == instant("1970-01-02T01:00:00+01:00", 0.0, "--after") == 86_400.0
    with pytest.raises(BadInput, match="--after"):
        instant("tomorrow", 0.0, "--after")
