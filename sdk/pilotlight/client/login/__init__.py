"""Logging in at an OpenID issuer, and the tokens that come of it."""
