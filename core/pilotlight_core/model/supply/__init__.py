"""What a version is made of and who vouches for it: keys with terms, signatures over folders, envelopes, bills of
materials, provenance, and policies. Values alone: whoever verifies a signature does so elsewhere (`host.supply`)."""
