"""Commands about how many containers functions have, and why."""
