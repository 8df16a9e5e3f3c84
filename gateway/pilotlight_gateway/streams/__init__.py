"""What is kept of streams so that they outlive what they run on, and what reads them.

  stream_journal  of one resumable stream: what its next container needs

Bounded by the gateway's byte budget, and gone with the gateway.

Entered by `calls`. Imports `bodies` alone.
"""
