"""Of the double."""
