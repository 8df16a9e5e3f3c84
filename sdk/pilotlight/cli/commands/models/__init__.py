"""Commands about models."""
