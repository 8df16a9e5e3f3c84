"""Times of the week, in the zones in which people live. Imports nothing of the platform; everybody may enter."""
