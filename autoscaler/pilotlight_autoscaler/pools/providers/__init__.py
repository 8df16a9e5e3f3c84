"""Who makes machines: the supervisor of this one, EC2, a cluster of Kubernetes; and one in memory, for tests."""
