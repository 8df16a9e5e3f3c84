"""Deploys: from an uploaded bundle to immutable versions, and from a ref back to a version.

`bundles` checks what may be in a bundle, `deploy_plan` decides what a deploy amounts to, `deployer` does it in an
order that a crash leaves whole, `resolver` finds the version that a ref names, `function_logs` reads what functions
print.

Entered by `http/endpoints` and the composition root.
"""
