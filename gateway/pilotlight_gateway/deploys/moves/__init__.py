"""What moves what callers reach without a deploy: going back, a rollout's promotion, aliases. HTTP and duties enter."""
