"""Resources of a platform: each class stands for a few routes of its HTTP API."""
