"""The configuration of a client: the environment, the file, and addresses that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight.client.login.saved_login import SavedLogin, save_login
from pilotlight.client.transport.config import ClientConfig, configured_platform, load_config
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
    """Functions call others without one: the message says how."""
    with pytest.raises(NotConfigured, match=r"Functions call others by \.remote"):
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


LOGIN = SavedLogin(
    id="l1", url="https://gpu.example", name="corp", issuer="https://login.example.com", client_id="cli",
    token_endpoint="https://login.example.com/token", token="t", ca_file="/etc/ca.pem",
)  # fmt: skip


def test_a_login_goes_before_the_file_and_behind_the_environment(tmp_path: Path) -> None:
    """And it is of its platform alone: no other one gets its token."""
    env = write(tmp_path, '{"url": "http://127.0.0.1:8470", "api_key": "k"}')
    save_login(tmp_path / "login.json", LOGIN)
    found = load_config(env)
    assert (found.url, found.api_key, found.login, found.ca_file) == ("https://gpu.example", "", "l1", "/etc/ca.pem")
    assert found.login_file == str(tmp_path / "login.json")
    assert load_config(env | {"PILOTLIGHT_URL": "https://gpu.example/"}) == found
    assert load_config(env | {"PILOTLIGHT_API_KEY": "own"}).api_key == "own"
    elsewhere = load_config(env | {"PILOTLIGHT_URL": "https://other.example"})
    assert (elsewhere.url, elsewhere.api_key, elsewhere.login_file) == ("https://other.example", "k", "")


def test_a_platform_is_named_before_there_is_a_key(tmp_path: Path) -> None:
    """By the words, the environment, a login, or the file; with the authority that is known of it."""
    env = {"PILOTLIGHT_HOME": str(tmp_path)}
    with pytest.raises(NotConfigured, match="pilotlight login https"):
        configured_platform(environ=env)
    write(tmp_path, '{"url": "https://10.0.0.5:8470", "api_key": "k", "ca_file": "own.pem"}')
    assert configured_platform(environ=env) == ClientConfig(url="https://10.0.0.5:8470", api_key="", ca_file="own.pem")
    save_login(tmp_path / "login.json", LOGIN)
    assert configured_platform(environ=env).url == "https://gpu.example"
    assert configured_platform("https://10.0.0.5:8470/", env).ca_file == "own.pem"
    assert configured_platform("https://new.example", env) == ClientConfig(url="https://new.example", api_key="")
    with pytest.raises(BadInput, match="expected http"):
        configured_platform("gpu.example", env)
