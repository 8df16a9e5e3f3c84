"""What settings stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.settings import ServeSettings


def test_what_is_not_set_is_below_the_state_folder(tmp_path: Path) -> None:
    """The ledger is SQLite, the blobs are a folder, and nothing is read that nobody named."""
    settings = ServeSettings(state_dir=str(tmp_path))  # type: ignore[arg-type]

    assert settings.database_url.startswith(f"sqlite:///{tmp_path}")
    assert str(tmp_path) in settings.blobs
    assert (settings.prices, settings.tiers, settings.client_file) == (None, None, None)
    assert settings.webhook_networks == ()


def test_what_is_set_stands_for_itself() -> None:
    """Files below the home folder of whoever runs it."""
    settings = ServeSettings(
        ledger_url="postgresql://db/ledger",
        blob_url="s3://bucket/prefix",
        price_file="~/prices.toml",
        tiers_file="tiers.toml",
        webhook_allow="10.0.0.0/8, 127.0.0.1",
    )

    assert (settings.database_url, settings.blobs) == ("postgresql://db/ledger", "s3://bucket/prefix")
    assert (settings.prices, settings.tiers) == (Path.home() / "prices.toml", Path("tiers.toml"))
    assert [str(network) for network in settings.webhook_networks] == ["10.0.0.0/8", "127.0.0.1/32"]


def test_networks_that_are_none_are_refused() -> None:
    """Before anything is sent there."""
    with pytest.raises(BadInput):
        _ = ServeSettings(webhook_allow="10.0.0.0/99").webhook_networks
