"""Bodies about what versions are made of, and by which keys it is signed."""
