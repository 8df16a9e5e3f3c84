"""Bodies about what calls went through, for whoever looks."""
