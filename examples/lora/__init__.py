"""Two adapters over one language model, trained on this machine and called side by side."""
