"""What this gateway knows of nodes, containers and curves, and the questions that are asked about them.

`fleet_view` keeps the last report of each node, `fleet_inventory` is the fleet as placement sees it,
`fleet_questions` answers one question at a time in a thread, `placement_explainer` asks the controller why,
`curve_trials` keeps throughput curves.

Entered by `http/endpoints`, `deploys` and `calls/call_service`.
"""
