"""What a gateway and its duties are told: defaults below the state folder, and bounds that are refused by name."""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path

import pytest

from pilotlight_core.host.config import BadSetting, parse
from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.settings import DutyProcessSettings, DutySettings, ServeSettings


def test_what_is_kept_is_below_the_state_folder_unless_it_is_said_where(tmp_path: Path) -> None:
    """The ledger and blobs; prices, tiers and the client file are none unless they are named."""
    settings = parse(ServeSettings, "", ["--state-dir", str(tmp_path)], {})

    assert settings.database_url == f"sqlite:///{tmp_path}/ledger.sqlite"
    assert settings.blobs == f"file://{tmp_path}/blobs"
    assert (settings.prices, settings.tiers, settings.client_file) == (None, None, None)
    assert settings.webhook_networks == ()


def test_a_relative_state_folder_is_one_place_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is told to others has the whole path: their working folder may be another."""
    monkeypatch.chdir(tmp_path)
    settings = parse(DutySettings, "", ["--state-dir", "state"], {})

    assert settings.database_url == f"sqlite:///{tmp_path}/state/ledger.sqlite"
    assert settings.blobs == f"file://{tmp_path}/state/blobs"


def test_whoever_keeps_them_elsewhere_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By flags or variables; `~` is the home of the user."""
    monkeypatch.setenv("HOME", str(tmp_path))
    flags = ["--ledger-url", "postgresql://db/x", "--price-file", "~/prices.toml", "--tiers-file", "/etc/tiers.toml"]
    variables = {"PILOTLIGHT_BLOB_URL": "s3://bucket/x", "PILOTLIGHT_BOOTSTRAP_CLIENT_FILE": "~/client.json"}

    settings = parse(ServeSettings, "", flags, variables)

    assert (settings.database_url, settings.blobs) == ("postgresql://db/x", "s3://bucket/x")
    assert settings.prices == tmp_path / "prices.toml"
    assert settings.tiers == Path("/etc/tiers.toml")
    assert settings.client_file == tmp_path / "client.json"


def test_networks_that_webhooks_may_reach_are_a_list() -> None:
    """Addresses and networks with commas between; what is none is named."""
    settings = parse(DutySettings, "", ["--webhook-allow", "10.1.2.3, 10.8.0.0/16"], {})
    assert settings.webhook_networks == (ip_network("10.1.2.3/32"), ip_network("10.8.0.0/16"))

    wrong = parse(DutySettings, "", ["--webhook-allow", "intranet"], {})
    with pytest.raises(BadInput, match="'intranet' is no address or network"):
        _ = wrong.webhook_networks


@pytest.mark.parametrize(
    ("flag", "value", "says"),
    [
        ("--port", "70000", "expected int <= 65535"),
        ("--idempotency-seconds", "59", "expected float >= 60"),
        ("--job-seconds", "3000000", "expected float <= 2678400"),
        ("--job-bytes", "1000", "expected int >= 1048576"),
        ("--replicas", "6", "expected int <= 5"),
        ("--drain-seconds", "-1", "expected float >= 0"),
        ("--launch", "Not One", "expected"),
    ],
)
def test_what_is_out_of_bounds_is_refused_by_its_flag(flag: str, value: str, says: str) -> None:
    """A gateway does not start with what it cannot hold."""
    with pytest.raises(BadSetting) as caught:
        parse(ServeSettings, "", [flag, value], {})

    assert str(caught.value).startswith(f"{flag}: {says}")


def test_duties_are_told_what_they_share_with_a_gateway_and_where_to_serve_metrics() -> None:
    """Nothing of the gateway's own; metrics only where somebody asks for them."""
    settings = parse(DutyProcessSettings, "", ["--blob-url", "s3://b/x"], {})

    assert (settings.blobs, settings.metrics_host, settings.metrics_port) == ("s3://b/x", "127.0.0.1", 0)
    with pytest.raises(BadSetting, match="Unrecognized arguments: --drain-seconds 1"):
        parse(DutyProcessSettings, "", ["--drain-seconds", "1"], {})


def test_large_bodies_leave_the_host_only_where_the_operator_says_so() -> None:
    """An address that others reach is refused by its flag unless the network is said to be the platform's alone."""
    flags = ["--internal-host", "10.0.0.5"]
    with pytest.raises(
        BadSetting, match=r"--internal-host \(PILOTLIGHT_INTERNAL_HOST\): .*--internal-plain.*10\.0\.0\.5"
    ):
        parse(ServeSettings, "", flags, {})

    assert parse(ServeSettings, "", [*flags, "--internal-plain"], {}).internal_host == "10.0.0.5"


@pytest.mark.parametrize("which", ["tls", "internal-tls"])
def test_a_certificate_and_its_key_are_named_together(which: str) -> None:
    """One without the other is refused by its flag; with a certificate large bodies may leave the host."""
    for half in ("cert", "key"):
        with pytest.raises(BadSetting, match=f"--{which}-cert .*expected a certificate and its key, or neither"):
            parse(ServeSettings, "", [f"--{which}-{half}", "x.pem"], {})

    both = [f"--{which}-cert", "x.pem", f"--{which}-key", "x.key", "--internal-host", "10.0.0.5"]
    if which == "internal-tls":
        assert parse(ServeSettings, "", both, {}).internal_host == "10.0.0.5"
    else:
        with pytest.raises(BadSetting, match="--internal-host"):
            parse(ServeSettings, "", both, {})


def test_the_first_clients_file_names_what_the_certificate_is_of() -> None:
    """Without TLS it is the address that it listens on, as ever."""
    named = ("--public-url", "https://gw-1.example.com:8470")
    with_tls = parse(ServeSettings, "", [*named, "--tls-cert", "a.pem", "--tls-key", "a.key"], {})

    assert with_tls.client_url("https://127.0.0.1:8470") == "https://gw-1.example.com:8470"
    assert parse(ServeSettings, "", [*named], {}).client_url("http://127.0.0.1:8470") == "http://127.0.0.1:8470"


def test_answers_of_others_name_a_gateway_unless_it_is_hidden() -> None:
    """One that listens on all addresses has none to name, unless it is told which."""
    listening = "http://10.0.0.7:8470"
    named = ["--public-url", "https://gw-1.example.com"]
    for flags, url in (
        ([], "http://10.0.0.7:8470"),
        (["--host", "0.0.0.0"], ""),  # noqa: S104 - no binding
        (named, "https://gw-1.example.com"),
        ([*named, "--hidden-home"], ""),
        (["--hidden-home"], ""),
    ):
        assert parse(ServeSettings, "", flags, {}).url_for_clients(listening) == url


def test_clients_certificates_need_a_certificate_of_the_gateways_own() -> None:
    """There is no handshake in which they could be shown otherwise."""
    with pytest.raises(BadSetting, match=r"--tls-client-ca .*expected --tls-cert beside it"):
        parse(ServeSettings, "", ["--tls-client-ca", "ca.pem"], {})


def test_a_clients_authority_is_named_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients have another folder."""
    monkeypatch.chdir(tmp_path)

    assert parse(ServeSettings, "", ["--ca-file", "ca.pem"], {}).authority == str(tmp_path / "ca.pem")
    assert parse(ServeSettings, "", [], {}).authority == ""
