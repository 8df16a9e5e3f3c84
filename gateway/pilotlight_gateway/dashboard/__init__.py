"""The dashboard: pages for people, made by a process of its own, which is a client of the gateways' `/v1` API.

It has no access to the bus, so every number on a page is a JSON route's, what a page shows is what its viewer's key may
see, and its death loses no call. `dashboard_serving.py` is the process; `all_pages.py` lists the pages, each of which
makes blocks (`blocks.py`) of JSON; the blocks become HTML (`block_markup.py`), and changes of them go over one stream
(`live_stream.py`). Nothing imports this room but its own process.
"""
