"""`pilotlight ca`, as a program."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pilotlight_core.host.certificates.authority_command import main


def test_it_says_where_the_files_are_and_what_to_start_with_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of an authority, a server and a client."""
    folder = str(tmp_path / "ca")
    assert main(["init", folder]) == 0
    assert f"PILOTLIGHT_CA_FILE={folder}/ca.pem" in capsys.readouterr().out

    assert main(["issue", "gw-1", "--ca", folder, "--host", "gw-1.example.com", "--ip", "10.0.0.5"]) == 0
    told = capsys.readouterr().out
    assert "a certificate for gw-1.example.com, 10.0.0.5, until " in told
    assert f"--tls-cert {folder}/gw-1.pem --tls-key {folder}/gw-1.key" in told
    assert "--tls-client-ca" not in told

    assert main(["issue", "reports", "--ca", folder, "--client", "--days", "30"]) == 0
    told = capsys.readouterr().out
    assert f"--tls-client-ca {folder}/ca.pem" in told
    assert "nats-server" not in told


def test_programs_read_the_same_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line."""
    main(["init", str(tmp_path / "ca"), "--json"])
    assert set(msgspec.json.decode(capsys.readouterr().out)) == {"certificate", "key", "expires"}

    main(["issue", "bus-1", "--ca", str(tmp_path / "ca"), "--host", "bus-1", "--server", "--client", "--json"])
    told = msgspec.json.decode(capsys.readouterr().out)
    assert (told["hosts"], told["server"], told["client"]) == (["bus-1"], True, True)
    assert Path(told["key"]).is_file()


def test_a_renewal_keeps_what_is_not_said_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names and uses, and says which; those that are given count in their place."""
    folder = str(tmp_path / "ca")
    main(["init", folder])
    main(["issue", "gw-1", "--ca", folder, "--host", "gw-1", "--ip", "::1", "--ip", "10.0.0.5", "--server", "--client"])
    main(["issue", "reports", "--ca", folder, "--client"])
    capsys.readouterr()

    assert main(["issue", "gw-1", "--ca", folder, "--replace"]) == 0
    told = capsys.readouterr().out
    assert "It says what the one before it said: for servers, for clients, gw-1, ::1, 10.0.0.5." in told
    main(["issue", "gw-1", "--ca", folder, "--replace", "--json"])
    renewed = msgspec.json.decode(capsys.readouterr().out)
    assert (renewed["hosts"], renewed["ips"], renewed["client"]) == (["gw-1"], ["::1", "10.0.0.5"], True)

    main(["issue", "gw-1", "--ca", folder, "--replace", "--host", "gw-2", "--server", "--json"])
    other = msgspec.json.decode(capsys.readouterr().out)
    assert (other["hosts"], other["ips"], other["client"]) == (["gw-2"], [], False)
    main(["issue", "reports", "--ca", folder, "--replace", "--json"])
    client = msgspec.json.decode(capsys.readouterr().out)
    assert (client["server"], client["client"]) == (False, True)
    (tmp_path / "ca" / "reports.pem").write_text("nothing")
    assert main(["issue", "reports", "--ca", folder, "--replace"]) == 1
    assert "which would be replaced, cannot be read" in capsys.readouterr().err


def test_what_is_refused_ends_with_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And code 1; nothing is overwritten without `--replace`."""
    folder = str(tmp_path / "ca")
    assert main(["issue", "gw-1", "--ca", folder, "--host", "a"]) == 1
    assert (
        capsys.readouterr().err
        == f"error: There is no authority in {folder}: 'pilotlight ca init {folder}' makes one.\n"
    )

    main(["init", folder])
    main(["issue", "gw-1", "--ca", folder, "--host", "a"])
    assert main(["issue", "gw-1", "--ca", folder, "--host", "a"]) == 1
    assert "would be overwritten. --replace renews them." in capsys.readouterr().err
    assert main(["init", folder]) == 1
    assert capsys.readouterr().err.endswith("ca.pem would be overwritten.\n")
    assert main(["issue", "gw-1", "--ca", folder, "--host", "a", "--replace"]) == 0
    with pytest.raises(SystemExit):
        main(["init", folder, "--days", "0"])
    assert "expected 1 to 36500 days" in capsys.readouterr().err
