"""The help desk: customers, their tickets, what is said about them, and tasks."""
