"""Idempotency keys: a repeated request gets the first one's answer instead of running again."""
