"""Logins in a browser: sessions, which stand for API keys for some hours."""
