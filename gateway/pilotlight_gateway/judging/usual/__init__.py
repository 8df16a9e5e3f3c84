"""What the old version usually takes: what scores are measured against."""
