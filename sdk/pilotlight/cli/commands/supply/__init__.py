"""Commands about what versions are made of, and who has signed it."""
