"""Calls for which their function has no room: which other function runs one, and how its caller waits on.

`fallback_finder` decides, `fallback_calls` runs: a `CallPort` for those who have callers that wait, such as HTTP. Jobs
wait themselves, and have the plain one. It enters calls and the registry.
"""
