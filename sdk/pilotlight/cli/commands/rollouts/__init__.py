"""Commands about the versions that callers reach: aliases and rollouts."""
