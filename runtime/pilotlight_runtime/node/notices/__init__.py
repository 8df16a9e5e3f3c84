"""What the provider of a node says of its end: who is asked, what holds, and what an agent does by it.

`notice_port` is what a provider is asked, with a module for each; `notice_rules` decides what holds of the answers, and
how the time until the deadline is spent; `notice_watch` asks, and keeps what holds on disk; `notice_drain` empties the
node. The room `node` imports it, and it imports the rooms below that.
"""
