"""Commands about what became of calls."""
