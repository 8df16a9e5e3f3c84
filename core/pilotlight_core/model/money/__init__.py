"""What may be spent, as it is set and as it is kept."""
