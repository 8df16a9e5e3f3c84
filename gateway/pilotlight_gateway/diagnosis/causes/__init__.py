"""One function for each cause: it returns a `Suspect` where the cause's constraint binds, else None."""
