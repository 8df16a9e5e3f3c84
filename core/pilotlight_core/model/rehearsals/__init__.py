"""What a container does before its first call, and again later. It imports nothing of the platform."""
