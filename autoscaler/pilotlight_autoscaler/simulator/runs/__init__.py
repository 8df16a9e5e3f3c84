"""Functions on a virtual clock: their queues, containers and calls, one by one or by counts."""
