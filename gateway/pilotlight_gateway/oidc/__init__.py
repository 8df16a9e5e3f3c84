"""People and programs that an OpenID issuer vouches for, by the tokens that it signs for them.

  issuer_book           sets, lists and removes the issuers on record
  token_text            reads a token strictly, before anything in it is believed
  token_claims          checks what a verified token says, and what its claims stand for: tenant and scopes
  jwks                  reads an issuer's public keys, and finds those that a token may be signed with
  jwks_source           the port by which an issuer is asked, over HTTP with bounds, with its fake
  issuer_keys           keeps the keys of each issuer, and decides when they are fetched again
  signatures            verifies by a library, which is loaded with the first token
  token_authenticator   all of it in the order of cost; remembers what it has verified
  issuers               what a gateway has of all this, put together

Entered by `tenancy.auth` through a port, and by `http.endpoints`.
"""
