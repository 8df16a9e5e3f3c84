"""What decorators read from a function, and what a call of it needs; it knows no platform."""
