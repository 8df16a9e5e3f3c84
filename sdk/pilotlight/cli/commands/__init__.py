"""The commands, each in a module that is named like it and has its Typer app as `app`."""
