"""What versions are made of, what policies say of that, and by which keys it is signed."""
