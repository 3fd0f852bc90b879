"""Servers that stand for the outside: a pager, an SMTP sink, receivers of webhooks and of SMS, each with a ledger."""
