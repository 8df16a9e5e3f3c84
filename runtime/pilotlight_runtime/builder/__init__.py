"""What runs in the sandbox of a builder: it locks requirements, or installs what was locked, with uv.

  build_frames   what an agent and a builder tell each other
  uv_commands    the command lines of uv, and the environment in which it runs
  base_stubs     the packages of a base environment, as wheels without contents: the resolver knows them, fetches none
  build_process  the process: one job, then it ends

No code of a tenant runs here, and none of a package: wheels are unpacked, and their modules compiled, not imported. It
reads what strangers have published all the same, so the agent believes nothing that comes from here. Entered by
`environments`, which starts it. As `guest` it never reaches the servers' floor.
"""
