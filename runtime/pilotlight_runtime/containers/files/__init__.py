"""A version's files on a node: fetched, verified, kept, and linked into sandboxes.

`staging` fetches them (`version_files`) if they fit on the disk (`disk_room`), against the signed manifest (`bundle`,
`artifact_files`); `file_cache` keeps them. Entered by `containers` and `node`.
"""
