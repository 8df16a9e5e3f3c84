"""What gateways tell each other of what calls were."""
