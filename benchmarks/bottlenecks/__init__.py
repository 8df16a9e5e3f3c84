"""Bottlenecks that are planted into models of a platform, in virtual time, for `benchmarks.diagnose`."""
