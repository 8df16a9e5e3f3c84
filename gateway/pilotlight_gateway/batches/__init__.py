"""Batches: many inputs of one function, submitted as one file and run as jobs.

  batch_service   submits and changes batches, and reads their results
  input_lines     reads and checks the lines of an upload
  batch_manifest  stores the inputs as chunks
  batch_port      the port of the records; `bus_batches` is the real one

Entered by `http.endpoints` and `duties`, whose `batch_duty` runs the batches.
"""
