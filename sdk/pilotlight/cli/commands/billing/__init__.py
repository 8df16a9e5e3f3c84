"""`pilotlight billing`: a module for each noun."""
