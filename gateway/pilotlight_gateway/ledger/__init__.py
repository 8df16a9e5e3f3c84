"""What was used and what it costs: the fold of usage events into SQL, and the reports over it."""
