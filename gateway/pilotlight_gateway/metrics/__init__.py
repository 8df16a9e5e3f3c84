"""Prometheus metrics of a gateway.

`gateway_metrics` counts requests and calls, and collects all sources at a scrape. Each other module is such a source,
for the statistics of one part.

Entered by the composition root, which connects the sources, and by `http`.
"""
