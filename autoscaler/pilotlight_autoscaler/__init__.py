"""The controller: from demand to desired containers to commands for agents."""
