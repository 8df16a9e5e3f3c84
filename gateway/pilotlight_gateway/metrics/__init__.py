"""What a gateway counts and shows to Prometheus: one module per subject, each a plain function of statistics.

`gateway_metrics` counts requests and calls; `call_metrics`, `home_metrics`, `job_metrics`, `limit_metrics`,
`key_metrics` and `bus_metrics` turn statistics into gauges when they are scraped. The sources are given to
`GatewayMetrics` by the composition root.

Entered by the composition root and `http`.
"""
