"""The product: a help desk and CRM whose tenants automate them, and what it takes to run it."""
