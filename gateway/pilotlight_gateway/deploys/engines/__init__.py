"""What a deploy works out for functions that are engines: memory, and the most that a call is billed for."""
