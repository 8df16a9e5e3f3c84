"""What the API says and is told of rollouts: aliases, going back, and how the traffic of an app is split."""
