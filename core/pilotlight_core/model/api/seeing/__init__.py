"""Bodies of the HTTP API about who looks and what is under pressure."""
