"""Pools of nodes: what operators say of them, how they are shown, and what the controller asks of `pilotlight up`."""
