"""Commands about what calls were: counts, examples, and why."""
