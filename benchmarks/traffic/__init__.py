"""Keep-alive policies of others, and recorded traffic, for `benchmarks.autoscaler_traces`."""
