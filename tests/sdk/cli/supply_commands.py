"""What a platform answers commands of the supply chain, and words that suit each of them."""

from __future__ import annotations

from typing import Any

from tests.sdk.cli.seeing_answers import NOW

TRUSTED = {
    "name": "release", "id": "875ab38dfa0d77c1", "pem": "-----BEGIN PUBLIC KEY-----", "added_at": NOW, "added_by": "k",
    "not_before": 0.0, "not_after": 4e9, "revoked_at": 0.0, "reason": "", "counts": True, "why": "",
}  # fmt: skip
SIGNING = {
    "serial": 7, "operator": "0c1f0eXYabcd0123",
    "keys": [
        {"id": "5f0c21aa3b9d7e10", "not_before": 0.0, "not_after": NOW, "revoked_at": 0.0, "reason": "",
         "counts": False, "why": "has expired on 2026-11-27 08:00 UTC", "signs_here": False},
        {"id": "9b1e21aa3b9d7e10", "not_before": 0.0, "not_after": 0.0, "revoked_at": 0.0, "reason": "",
         "counts": True, "why": "", "signs_here": True},
    ],
}  # fmt: skip
POLICY = {
    "policy": {"mode": "enforce", "signed": True, "deny_licences": ["AGPL-*"]}, "revision": 3, "changed_at": NOW,
    "changed_by": "8c1f0eXYabcd",
}  # fmt: skip
VERDICT = {
    "version": "hello.greet@v1", "version_id": "ver_1", "at": NOW, "allowed": True, "more": 0,
    "findings": [{"rule": "licence", "component": "pkg:pypi/paraphrase-multilingual@1.0.0", "of": "operator",
                  "says": "pkg:pypi/paraphrase-multilingual@1.0.0 has the licence AGPL-3.0-only; it is denied.",
                  "enforced": False}],
    "data_published_at": NOW, "data_age_s": 86_400.0, "policies": {"operator": 1}, "warnings": [],
}  # fmt: skip
SBOM = {"bomFormat": "CycloneDX", "specVersion": "1.6", "components": []}
SUPPLY_ANSWERS: dict[tuple[str, str], Any] = {
    ("GET", "/v1/functions/hello.greet/sbom"): SBOM,
    ("GET", "/v1/functions/hello.greet/verdict"): VERDICT,
    ("GET", "/v1/policy"): POLICY,
    ("PUT", "/v1/policy"): POLICY,
    ("DELETE", "/v1/policy"): None,
    ("GET", "/v1/trusted-keys"): {"keys": [TRUSTED]},
    ("PUT", "/v1/trusted-keys/release"): TRUSTED,
    ("POST", "/v1/trusted-keys/release/revoke"): TRUSTED,
    ("GET", "/v1/signing-keys"): SIGNING,
    ("PUT", "/v1/signing-keys"): SIGNING,
    ("POST", "/v1/signing-keys/resign"): {"looked_at": 2, "signed": 1, "refused": [], "next": ""},
}
SUPPLY_WORDS = {
    "trust new": "trust new new.key",
    "trust add": "trust add release release.pub",
    "trust list": "trust list",
    "trust revoke": "trust revoke release --reason lost",
    "trust sign": "trust sign model --key release.key",
    "policy show": "policy show",
    "policy set": "policy set --signed",
    "policy remove": "policy remove",
    "policy check": "policy check hello.greet",
    "sbom": "sbom hello.greet",
    "keyset list": "keyset list",
    "keyset new": "keyset new keys",
    "keyset vouch": "keyset vouch operator --key keys",
    "keyset publish": "keyset publish set.json",
    "keyset resign": "keyset resign",
}
