"""What a simulation found: sums, distributions, and how they are shown."""
