"""The controller: demand -> desired containers -> commands to agents."""
