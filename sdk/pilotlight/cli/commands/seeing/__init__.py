"""Commands about what calls were: counts, examples, and what became of one."""
