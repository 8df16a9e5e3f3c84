"""Calls of an HTTP API that cannot be changed: as many at a time as it takes, several in one request, safe to repeat.

capacity_limit     how many requests it takes at a time, as its answers show
waiting_items      which calls go in the next request, and when
upstream_port      what sends requests, and what is known of one that fails
upstream_client    the same over HTTP
upstream_calls     calls under way: runs the others on an event loop
upstream           what functions use
"""
