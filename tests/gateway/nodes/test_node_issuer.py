"""The file of the keys by which gateways let nodes in."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.nodes.node_issuer import load_issuer, main, make_issuer


def test_the_keys_are_made_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For their owner alone; what is printed are the public ones, each time the same."""
    path = tmp_path / "issuer.json"
    assert main([str(path)]) == 0
    first = capsys.readouterr().out
    assert main([str(path)]) == 0
    assert capsys.readouterr().out == first
    keys = load_issuer(path)
    assert first == f"--issuer {keys.public.issuer} --keeper {keys.public.keeper}\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert keys.issuer.seed not in first
    with pytest.raises(FileExistsError):
        make_issuer(path)


@pytest.mark.parametrize("content", ["", "{}", '{"issuer": "SA", "keeper": "SU"}'])
def test_what_has_no_keys_is_said(tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By the command and by a gateway."""
    path = tmp_path / "issuer.json"
    path.write_text(content)
    with pytest.raises(BadInput, match="node_issuer"):
        load_issuer(path)
    assert main([str(path)]) == 1
    assert "there are no keys" in capsys.readouterr().err


def test_keys_that_others_may_have_read_let_nobody_in(tmp_path: Path) -> None:
    """Whoever has them is everybody on the bus; what to do is said."""
    path = tmp_path / "issuer.json"
    make_issuer(path)
    path.chmod(0o640)
    with pytest.raises(BadInput, match=f"node_issuer: .* has mode 0640.*chmod 600 {path}"):
        load_issuer(path)
    path.chmod(0o400)
    load_issuer(path)
