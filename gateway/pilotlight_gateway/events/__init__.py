"""Events of the platform: what homes see of breakers, queues and slowdowns, and what people read.

pressure_events  what has changed since the last look, as events. Pure
event_reader     the port from which they are read, over the bus and in memory
home_events      looks at the homes each second
"""
