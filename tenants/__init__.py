"""The tenancy: whose row is whose, and who may do what; it knows nothing of automation."""
