"""The bodies of calls and deploys: counted, read, checked against schemas, and rendered as JSON.

  byte_budget     how many bytes of bodies are held
  call_requests   reads requests of calls; `json_structs` those of the API
  deploy_requests reads and checks requests to deploy; `bundles` their files, `artifact_rules` their artifacts
  body_work       what is done with a body, and how much of it at once
  body_codec      does it: at once what is small, in a worker process what is large or stands for much
  worker_pool     the worker processes, and whose turn it is
  body_worker     the worker process
  worker_frames   the messages between a gateway and a worker

A body is a stranger's: a few bytes can stand for millions of values, which would stop the event loop and fill the
gateway's memory. A worker has bounds of its own and no secrets, and can be killed.

Entered by `calls`, `jobs`, `batches`, `deploys` and `http`. Imports `schemas` alone.
"""
