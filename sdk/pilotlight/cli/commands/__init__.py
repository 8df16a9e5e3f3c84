"""The commands: a module each, of the same name, with a Typer app `app`."""
