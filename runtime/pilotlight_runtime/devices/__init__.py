"""What a node has that functions can run on. Import from the noun: `port`, `cpu`."""
