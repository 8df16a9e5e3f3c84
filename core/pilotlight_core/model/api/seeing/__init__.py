"""Bodies about what calls went through, what is under pressure, and sessions of whoever looks."""
