"""One pass over all versions: from the `World` to commands.

`decide` is the pass, `version_views` shows it the versions, and `quarantine` finds those on which it fails. Pure: time
is an argument. Entered by the controller.
"""
