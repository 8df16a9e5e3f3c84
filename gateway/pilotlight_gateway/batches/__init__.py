"""Batches: many inputs submitted as one file, run as jobs, read as one result.

`input_lines` reads and checks lines, `batch_manifest` stores them as chunks, `batch_service` is what HTTP uses,
`bus_batches` stores records behind `batch_port`. The driver of running batches is a duty (`duties/batch_duty`).

Entered by `http/endpoints` and `duties`.
"""
