"""Events: what a process tells people of what it did or saw. `event_log` is the port; `bus_event_log` keeps them."""
