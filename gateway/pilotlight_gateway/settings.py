"""What a gateway is told."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from pilotlight_core.host.config import GatewaySettings

Seconds = Annotated[float, Meta(ge=0, le=3600)]


class ServeSettings(GatewaySettings, frozen=True, kw_only=True):
    """`python -m pilotlight_gateway --help` lists them."""

    price_file: Annotated[str, Meta(description="prices (TOML) over those of the standard price book")] = ""
    ledger_url: Annotated[str, Meta(description="postgresql://…; empty: SQLite below --state-dir")] = ""
    drain_seconds: Annotated[Seconds, Meta(description="how long calls may finish after SIGTERM")] = 20.0

    @property
    def prices(self) -> Path | None:
        return Path(self.price_file).expanduser() if self.price_file else None

    @property
    def database_url(self) -> str:
        return self.ledger_url or f"sqlite:///{self.ledger_path.resolve()}"

    @property
    def blobs(self) -> str:
        return self.blob_url or self.default_blob_url

    @property
    def client_file(self) -> Path | None:
        return Path(self.bootstrap_client_file).expanduser() if self.bootstrap_client_file else None
