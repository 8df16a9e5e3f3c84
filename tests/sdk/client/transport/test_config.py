"""The configuration of a client: the environment, the file, and addresses that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight.client.transport.config import ClientConfig, load_config
from pilotlight.definitions.errors import BadInput, NotConfigured


def write(home: Path, text: str) -> dict[str, str]:
    home.mkdir(exist_ok=True)
    (home / "client.json").write_text(text)
    return {"PILOTLIGHT_HOME": str(home)}


def test_the_environment_overrides_the_file(tmp_path: Path) -> None:
    """The address and the key are overridden one by one."""
    env = write(tmp_path, '{"url": "http://127.0.0.1:8470/", "api_key": "k"}')
    assert load_config(env) == ClientConfig(url="http://127.0.0.1:8470", api_key="k")
    env |= {"PILOTLIGHT_URL": "https://gpu.example", "PILOTLIGHT_API_KEY": "other"}
    assert load_config(env) == ClientConfig(url="https://gpu.example", api_key="other")


def test_a_missing_variable_is_named(tmp_path: Path) -> None:
    """The advice names `pilotlight up`."""
    with pytest.raises(NotConfigured, match=r"PILOTLIGHT_API_KEY not set, and not in .*client\.json.*pilotlight up"):
        load_config({"PILOTLIGHT_HOME": str(tmp_path), "PILOTLIGHT_URL": "http://x"})


def test_a_broken_file_or_address_is_refused(tmp_path: Path) -> None:
    """An address without a scheme or host is broken."""
    with pytest.raises(BadInput, match="cannot be read"):
        load_config(write(tmp_path / "broken", "{"))
    for url in ("localhost:8470", "ftp://x", "http://"):
        with pytest.raises(BadInput, match="expected http"):
            load_config({"PILOTLIGHT_HOME": str(tmp_path), "PILOTLIGHT_URL": url, "PILOTLIGHT_API_KEY": "k"})


def test_inside_a_container_there_is_no_platform(tmp_path: Path) -> None:
    """Functions do not call functions yet."""
    with pytest.raises(NotConfigured, match="cannot call another"):
        load_config({"PL_APP": "/app", "PILOTLIGHT_URL": "http://x", "PILOTLIGHT_API_KEY": "k"})


def test_loopback_has_no_proxy() -> None:
    """Addresses of this machine are reached directly."""
    assert ClientConfig(url="http://127.0.0.1:1", api_key="k").is_loopback
    assert not ClientConfig(url="https://gpu.example", api_key="k").is_loopback


def test_an_authority_is_of_the_platform_that_it_was_named_for(tmp_path: Path) -> None:
    """The file's counts for the file's address; the environment's for any."""
    env = write(tmp_path, '{"url": "https://10.0.0.5:8470", "api_key": "k", "ca_file": "/etc/ca.pem"}')
    assert load_config(env).ca_file == "/etc/ca.pem"
    assert load_config(env | {"PILOTLIGHT_CA_FILE": "own.pem"}).ca_file == "own.pem"
    assert load_config(env | {"PILOTLIGHT_URL": "https://gpu.example"}).ca_file == ""
