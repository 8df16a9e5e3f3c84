"""The guest: what runs inside a sandbox, and the frames between it and the agent.

`guest_process` is the program: `loading` makes it the tenant's function (`guest_target`), then one of `serial_server`,
`threaded_server` and `async_server` serves it. `agent_channel` is the guest's end of the socket, `call_table` holds its
calls, `arguments` reads their input, `work_runner` and `async_work_runner` run the tenant's code and make frames of its
results, `remote_errors` of what it raised; `exits` ends the process. The agent uses `frames` and `guest_connection`.

Imports no other room of the runtime, and never `pilotlight_core.host` or `pilotlight_core.bus`.
"""
