"""`pilotlight doctor`: whether a machine can be a host of a platform, before it is one.

Each module reads one kind of facts and judges them: `kernel_facts`, `machine_facts`, `storage_facts`, `clock_facts`,
`python_facts`, `bus_facts`, `network_facts` with what `network_probes` found, and `sandbox_facts`, which are those of
`pilotlight node check`. A judgement is a `Finding`; `doctor_command` runs all that concern a role, and prints them.

Entered by the command alone. Nothing here starts a part of a platform, and nothing that it makes stays.
"""
