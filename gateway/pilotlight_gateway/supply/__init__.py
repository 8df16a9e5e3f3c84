"""What versions are made of, who has signed what of it, and what policies say of that.

signing_keys        the key of the platform's with which this gateway signs now
osv_file            the operator's file of known vulnerabilities
osv_documents       what a document of it says of a version. Pure
policy_rules        what a policy says of a version. Pure
package_questions   what a gateway asks nodes about packages
base_inventories    what base environments and locked packages are, as nodes tell
pickle_heads        which files are pickles by their first bytes
supply_desk         what a deploy asks of all of them
policy_book         policies on record
trust_book          keys of tenants on record
weights_signatures  signatures over weights, kept with them
sbom_packages       packages as a version's own bill of materials has them
standing_verdicts   what is new in a verdict of a version that runs
policy_duty         holds what runs against its policies each day
gateway_supply      all of it, of a gateway
key_set_book        the platform's set of keys, as operators change it; signing versions again
"""
