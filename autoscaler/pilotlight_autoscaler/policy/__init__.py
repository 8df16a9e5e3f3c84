"""What a function should have, and why: decided from values alone, so a simulation decides as the controller does."""
