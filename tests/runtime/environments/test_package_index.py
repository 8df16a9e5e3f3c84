"""Which index an operator names, and what tenants are told of it."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_runtime.environments.package_index import read_index


def test_builders_connect_to_the_index_and_the_hosts_of_its_files() -> None:
    """Each once, with the port of its scheme unless one is named."""
    index = read_index("https://Index.example.com/simple/", "files.example.com, http://mirror.local:8080,10.0.0.5:8443")

    assert index.targets == (
        "index.example.com:443", "files.example.com:443", "http://mirror.local:8080", "10.0.0.5:8443",
    )  # fmt: skip
    assert read_index("http://10.0.0.5/simple", "http://10.0.0.5").targets == ("http://10.0.0.5:80",)
    assert read_index("http://127.0.0.1:81/").targets == ("http://127.0.0.1:81",)


@pytest.mark.parametrize(
    "url",
    ["", "index", "file:///packages", "ftp://e.com/", "https://", "http://e:x/", "https://e e/", "http://e/\nx", "-x"],
)
def test_what_is_no_index_is_refused(url: str) -> None:
    """With an example."""
    with pytest.raises(BadInput, match=r"--package-index .*expected the URL of an index"):
        read_index(url)


@pytest.mark.parametrize("hosts", ["a b", "tcp://e:1", "e:0", "e:x", "https://e/x", "user@e"])
def test_what_is_no_host_is_refused(hosts: str) -> None:
    """With an example."""
    with pytest.raises(BadInput, match=r"--package-hosts .*expected hosts"):
        read_index("https://e.com/", hosts)


def test_a_refusal_does_not_repeat_a_password() -> None:
    """It is in the agent's log."""
    with pytest.raises(BadInput) as refused:
        read_index("ftp://robot:s3cret@e.com/")

    assert "s3cret" not in refused.value.detail


def test_tenants_do_not_learn_where_the_index_is() -> None:
    """Whatever part of its address the resolver names."""
    index = read_index("http://robot:s3cret@inside.corp:8080/simple/", "files.corp")
    words = (
        "Failed to fetch: `http://robot:s3cret@inside.corp:8080/simple/x/`\n"
        "tried http://inside.corp:8080/simple/ and http://robot:****@inside.corp:8080/files/x.whl at inside.corp:8080"
        " or https://files.corp/x.whl, files.corp:443"
    )

    told = index.without_address(words)

    assert "inside.corp" not in told
    assert "files.corp" not in told
    assert "s3cret" not in told
    assert "<the package index>x/" in told
