"""`python -m pilotlight_runtime.builder`: see `build_process`."""

from pilotlight_runtime.builder.build_process import main

main()
