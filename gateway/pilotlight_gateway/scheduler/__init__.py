"""The fair queue of one version, and what a home knows of its containers. All pure: an instant is an argument."""
