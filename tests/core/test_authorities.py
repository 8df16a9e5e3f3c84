"""Whose certificates a process believes, and what it says of one that it does not."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from pilotlight_core.authorities import add_authorities, believe_gateways, certificate_problem, trust_authorities
from pilotlight_core.model.errors import BadInput
from tests.builders.certificates import an_authority


def problem(message: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = message
    return error


def test_those_in_a_file_count_alone_or_beside_others(tmp_path: Path) -> None:
    """Names are verified either way."""
    first, second = an_authority(tmp_path / "a"), an_authority(tmp_path / "b")
    context = trust_authorities(str(first), "--ca-file")
    assert (len(context.get_ca_certs()), context.check_hostname) == (1, True)

    add_authorities(context, str(second), "--ca-file")
    assert len(context.get_ca_certs()) == 2


def test_gateways_are_believed_by_public_authorities_and_those_in_a_file(tmp_path: Path) -> None:
    """Names are verified."""
    public, both = believe_gateways(""), believe_gateways(str(an_authority(tmp_path / "a")))
    assert both.check_hostname
    assert len(both.get_ca_certs()) == len(public.get_ca_certs()) + 1


def test_a_file_without_any_is_named(tmp_path: Path) -> None:
    """With the setting that named it."""
    (tmp_path / "text").write_text("nothing")

    with pytest.raises(BadInput, match=r"X: .*text has no certificates of authorities \(PEM\)\."):
        trust_authorities(str(tmp_path / "text"), "X")
    with pytest.raises(BadInput, match=r"X: .*none cannot be read: No such file or directory\."):
        trust_authorities(str(tmp_path / "none"), "X")


@pytest.mark.parametrize(
    ("message", "ca_file", "says"),
    [
        ("Hostname mismatch, certificate is not valid for 'a'.", "ca.pem", "its certificate is of another name (Host"),
        ("IP address mismatch, certificate is not valid for '1.2.3.4'.", "", "its certificate is of another name (IP"),
        ("certificate has expired", "", "its certificate has expired, by this machine's clock"),
        ("certificate is not yet valid", "", "its certificate is not yet valid, by this machine's clock"),
        (
            "self-signed certificate in certificate chain",
            "ca.pem",
            "its certificate is of no authority among those in ",
        ),
        ("unable to get local issuer certificate", "", "PILOTLIGHT_CA_FILE names another's file (unable to get"),
    ],
)
def test_what_is_wrong_with_a_certificate(message: str, ca_file: str, says: str) -> None:
    """A sentence, with what to do about it."""
    assert says in certificate_problem(problem(message), ca_file)


def test_other_errors_are_no_problem_of_certificates() -> None:
    """Such as a refused connection, or a server that speaks no TLS."""
    assert certificate_problem(OSError("refused"), "") == ""
    assert certificate_problem(ssl.SSLError(1, "wrong version number"), "") == ""
