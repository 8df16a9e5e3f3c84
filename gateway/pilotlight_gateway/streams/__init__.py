"""What is kept of streams so that they outlive what they run on, and what reads them.

  stream_journal   of one resumable stream: what its next container needs
  kept_stream      the events of one stream, for a reader that goes and comes back
  stream_keeper    all of those of this gateway, and how long they are kept after their end
  stream_pace      how its chunks came: the first one's wait, and the gaps between the others
  stream_exchange  reads them, here or at the gateway that has them

Bounded by byte budgets, and gone with the gateway.

Entered by `calls`, `http` and the composition root. Imports `bodies` alone.
"""
