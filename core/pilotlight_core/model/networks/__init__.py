"""Where functions may connect to."""
