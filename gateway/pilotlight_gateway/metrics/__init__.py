"""Prometheus metrics of a gateway.

`gateway_metrics` counts requests and calls. Each module is a source for `ProcessMetrics`, most for the statistics of
one part.

Entered by the composition root, which connects the sources, and by `http`.
"""
