"""What owners of apps ask about the versions that callers reach: aliases, going back, rollouts."""
