"""E-processes: bets that the new version is worse, each a few numbers that a call changes."""
