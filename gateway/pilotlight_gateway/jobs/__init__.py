"""Durable calls: stored before they are accepted, run by the home of their function, polled at any gateway."""
