"""Placement of containers: pure functions over a model of the fleet."""
