"""Minutes in which functions were called, and what keeping containers over them costs."""
