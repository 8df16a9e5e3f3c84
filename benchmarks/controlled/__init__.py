"""What the controller's benchmark surrounds it with: functions, nodes and homes that speak as real ones do."""
