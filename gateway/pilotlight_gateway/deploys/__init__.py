"""Deploys: from an uploaded bundle to immutable versions, and from a ref back to a version.

  bundles        checks the files of a bundle
  deploy_plan    decides what a deploy changes
  deployer       stores blobs, signatures and records in a crash-safe order
  resolver       finds the version of a ref
  function_logs  reads what functions print

Entered by `http.endpoints` and the composition root.
"""
