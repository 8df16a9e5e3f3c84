"""How a call ends that does not go well: its errors, and whether it is tried again. Imports nothing else of calls."""
