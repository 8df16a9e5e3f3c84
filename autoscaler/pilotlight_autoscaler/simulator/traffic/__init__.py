"""The calls of a simulation: recorded, counted by minute, or drawn from patterns."""
