"""What earlier releases wrote: states, records, messages and their source. The present tree has to go on with it."""
