"""What functions find beside their base environment: requirements locked at a deploy, and built once on this node.

  package_index       the operator's index: its URL, and the hosts that a builder may connect to
  base_facts          what a base environment is, by the packages that it has
  build_sandbox       one job of a builder, from its sandbox to its answer
  built_files         writes what a builder sends, within bounds
  environment_cache   what is built, by tenant; the least recently used goes
  environment_builds  each is built once, however many containers wait for it
  lock_answers        gateways that ask for a lock

Entered by `containers` and `node`. A builder (`builder`) runs in a sandbox of its own, whose only way out leads to the
index. This process unpacks no package and imports none: it writes the files that come, and links them.
"""
