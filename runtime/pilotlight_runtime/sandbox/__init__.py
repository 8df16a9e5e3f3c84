"""The walls around tenant code. Import from the noun: `launcher`, `profile`, `port`, `uids`, `interpreter`."""
