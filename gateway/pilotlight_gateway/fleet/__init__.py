"""This gateway's view of nodes, containers and throughput curves.

  fleet_view           keeps the last report of each node
  fleet_inventory      answers questions about hardware; `fleet_questions` runs them in a thread
  placement_explainer  asks the leading controller for its reasons
  curve_trials         keeps throughput curves

Entered by `http.endpoints`, `deploys` and `calls.call_service`.
"""
