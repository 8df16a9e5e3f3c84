"""What pages are made of: markup, blocks, their changes, numbers as they are shown, who looks, what the API says."""
