"""The guest: what runs inside a sandbox, and the frames between it and the agent.

`guest_process` is the program: `loading` loads the tenant's function (`guest_target`), then `serial_server`,
`threaded_server` or `async_server` serves it. `agent_channel` is the guest's end of the socket, `call_table` holds its
calls, `nested_calls` are those that its function makes, `arguments` reads their input, `work_runner` and
`async_work_runner` run them, `remote_errors` makes text of exceptions, `exits` ends the process. The agent uses
`frames` and `guest_connection`.

Imports no other room of the runtime, and never `pilotlight_core.host` or `pilotlight_core.bus`.
"""
