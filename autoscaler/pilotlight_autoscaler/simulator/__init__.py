"""What the policies would have done: models of time in which the controller's own decisions run over recorded calls."""
