"""Where containers go: pure functions over a model of the fleet."""
