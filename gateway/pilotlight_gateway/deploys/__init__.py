"""Deploys: from an uploaded bundle to immutable versions, and from a ref back to a version.

  deploy_plan    the versions that a deploy makes
  app_records    an app's record after it, and which versions are kept
  deploy_quota   how much a tenant may have deployed; `deploy_limits` what that may hold, `blob_usage` its files
  present_files  which files need no upload
  deployer       stores blobs, signatures and records in a crash-safe order
  resolver       finds the version of a ref
  blob_links     gives nodes links to the files of what is bound there
  function_logs  reads what functions print; `line_owners` says which nodes may say it

Entered by `http.endpoints` and the composition root.
"""
