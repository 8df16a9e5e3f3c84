"""What versions are made of, who has signed what of it, and what policies say of that.

signing_keys       the key of the platform's with which this gateway signs now
osv_file           the operator's file of known vulnerabilities
policy_rules       what a policy says of a version. Pure
base_inventories   what base environments and locked packages are, as nodes tell
version_evidence   the documents of a version: bill of materials, provenance, verdict
supply_desk        what a deploy asks of all of them
policy_book        policies on record
trust_book         keys of tenants on record
key_set_book       the platform's set of keys, as operators change it; signing versions again
"""
