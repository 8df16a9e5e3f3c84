"""What a gateway counts and shows to Prometheus: one module per subject, each a plain function of statistics.

`gateway_metrics` counts requests and calls; `home_metrics`, `job_metrics`, `limit_metrics` and `key_metrics` read the
statistics of their rooms when they are scraped.

Entered by the composition root, `http` and its endpoints.
"""
