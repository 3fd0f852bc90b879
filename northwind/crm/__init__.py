"""The CRM: companies, leads, and notes about them."""
