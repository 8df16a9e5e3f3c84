"""The command with which an operator vouches for gateways' keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_core.host.signing import PUBLIC, BadSignature, Signer, Verifier
from pilotlight_gateway.operator_key import KEY_SET, OPERATOR_KEY, load_key_set, main, vouch


def test_the_first_set_makes_the_operators_key_and_the_next_is_of_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder or a file names a gateway's key; the file that comes out is read as it was signed."""
    one, other = Signer.load_or_create(tmp_path / "one"), Signer.load_or_create(tmp_path / "other")
    folder = tmp_path / "operator"

    assert main([str(folder), str(tmp_path / "one")]) == 0
    first = load_key_set(str(folder / KEY_SET))
    assert first is not None
    assert first.check().names() == (one.key_id,)
    assert first.root == Verifier.load(folder / f"{OPERATOR_KEY}.pub").public
    assert (folder / OPERATOR_KEY).stat().st_mode & 0o077 == 0

    later = vouch(folder, [tmp_path / "one", tmp_path / "other" / PUBLIC], first.check().serial + 1)
    assert (later.root, set(later.check().names())) == (first.root, {one.key_id, other.key_id})
    assert load_key_set(str(folder / KEY_SET)) == later
    said = capsys.readouterr().out
    assert one.key_id in said
    assert "operator_ed25519.pub: for agents" in said


def test_what_is_no_key_or_no_set_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And no file is written."""
    assert main([str(tmp_path / "operator"), str(tmp_path / "nowhere")]) == 1
    assert "error: There is no public key" in capsys.readouterr().err
    assert not (tmp_path / "operator" / KEY_SET).exists()

    assert load_key_set("") is None
    (tmp_path / "set").write_text("{}")
    for path in ("set", "nowhere"):
        with pytest.raises(BadSignature, match=f"--key-set: there is no signed set of keys in .*{path}"):
            load_key_set(str(tmp_path / path))
