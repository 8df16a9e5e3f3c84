"""The audit log: who changed what.

  audit_log      the port, and its fake in memory
  bus_audit_log  the real one, over a stream from which nothing can be deleted
  audit_entries  puts together what was written of a change before and after it

Entered by `http.protocol.audited_changes`, which writes, and `http.endpoints.oversight.audit`, which reads.
"""
