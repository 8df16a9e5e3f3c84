"""What a platform answers commands about who one is."""

from __future__ import annotations

from tests.sdk.cli.seeing_answers import NOW

ISSUER = {
    "name": "corp", "url": "https://login.example.com", "audience": "https://gpu.example.com/api", "client_id": "cli",
    "jwks_url": "https://login.example.com/keys", "tenant": "", "tenants": {"acme-corp": "acme"},
    "groups": {"engineers": ["invoke", "deploy"], "*": ["read"]}, "keys": 2, "keys_age_s": 61.0,
    "problem": "https://login.example.com/keys has answered 502",
}  # fmt: skip
CALLER = {
    "tenant": "acme", "key": "oidc-corp-0123456789abcdef", "scopes": ["invoke", "deploy"], "issuer": "corp",
    "subject": "ada@example.com", "expires_at": NOW + 300,
}  # fmt: skip
