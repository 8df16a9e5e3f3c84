"""What the duties send to systems of others: traces to a collector. Entered by `duty_serving.py`."""
