"""What runs inside a sandbox, and the frames by which an agent speaks to it. Never reaches `pilotlight_core.host`."""
