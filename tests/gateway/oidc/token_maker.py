"""An issuer that a test has in hand, so that it can sign what no honest one would. Honest ones: `identity_provider`."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from typing import Any

from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from pilotlight_core.model.api.issuer_api import IssuerRequest
from pilotlight_core.model.records.issuers import IssuerRecord
from tests.gateway.world import WALL, World

URL = "https://login.example.com"
JWKS_URL = "https://login.example.com/keys"
AUDIENCE = "https://pilotlight.example.com"
RECORD = IssuerRecord(
    name="corp", url=URL, audience=AUDIENCE, jwks_url=JWKS_URL, client_id="cli", tenant_claim="org",
    tenants={"acme-corp": "acme"}, groups={"engineers": ("invoke", "deploy"), "admins": ("operator",)},
)  # fmt: skip
REQUEST = IssuerRequest(
    url=URL, audience=AUDIENCE, jwks_url=JWKS_URL, client_id="cli", tenant_claim="org",
    tenants={"acme-corp": "acme"}, groups={"engineers": ("invoke", "deploy")},
)  # fmt: skip
Key = RSAKey | ECKey | OKPKey


def encoded(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")


def claims(**changed: Any) -> dict[str, Any]:
    """What a good token says; None takes one out."""
    good = {
        "iss": URL, "aud": AUDIENCE, "sub": "ada", "iat": WALL, "exp": WALL + 300, "org": "acme-corp",
        "groups": ["engineers"],
    }  # fmt: skip
    return {name: value for name, value in (good | changed).items() if value is not None}


class TokenMaker:
    """Signs whatever a test says."""

    def __init__(self, algorithm: str = "ES256", name: str | None = "key-1") -> None:
        self.algorithm, self.name = algorithm, name
        self.key = new_key_for(algorithm)

    def jwk(self, **changed: Any) -> dict[str, Any]:
        """The public half, as it is shown."""
        shown = self.key.as_dict(private=False) | {"kid": self.name, "use": "sig", "alg": self.algorithm} | changed
        return {name: value for name, value in shown.items() if value is not None}

    def jwks(self, *others: dict[str, Any]) -> bytes:
        return json.dumps({"keys": [self.jwk(), *others]}).encode()

    def token(self, header: dict[str, Any] | None = None, **changed: Any) -> bytes:
        """A token with these claims, in other words than a good one's where `changed` says so."""
        head = {"alg": self.algorithm, "kid": self.name, "typ": "at+jwt"} | (header or {})
        known = {name: value for name, value in head.items() if value is not None}
        return self.raw(json.dumps(known).encode(), json.dumps(claims(**changed)).encode())

    def raw(self, header: bytes, payload: bytes) -> bytes:
        """A token of these very bytes, with a good signature."""
        signed = encoded(header) + b"." + encoded(payload)
        signature = JWSRegistry.algorithms[self.algorithm].sign(signed, self.key)
        return signed + b"." + encoded(signature)


def new_key_for(algorithm: str) -> Key:
    if algorithm[:2] in ("RS", "PS"):
        return RSAKey.generate_key(2048)
    if algorithm.startswith("ES"):
        return ECKey.generate_key({"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}[algorithm])
    return OKPKey.generate_key("Ed25519")


def on_record(world: World, maker: TokenMaker, record: IssuerRecord = RECORD) -> None:
    """The issuer is on record, shows its key, and the tenant acme is there."""
    world.add_key("acme", "invoke")
    world.registry.issuer_records[record.name] = record
    for tell in world.registry.on_change:
        tell(f"issuer.{record.name}", record)
    world.jwks.documents[record.jwks_url] = maker.jwks()
