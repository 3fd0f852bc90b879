"""The automation engine: rules that tenants build, run durably on PostgreSQL by shared workers."""
