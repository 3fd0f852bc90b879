"""Knows a database again: its server's own number and its number in it, which no dump takes along."""

from automation.store import statements

# PostgreSQL looks at the right to call a function before it looks at which branch calls it.
MAY_ASK = "SELECT has_function_privilege('pg_control_system()', 'execute')"
SERVER = "SELECT system_identifier::text FROM pg_control_system()"
DATABASE = "SELECT oid::text FROM pg_database WHERE datname = current_database()"
# The row's lock makes two workers that start together agree.
SEEN = """
INSERT INTO automation_installation (id, place, since) VALUES (1, %s, automation_now())
ON CONFLICT (id) DO UPDATE SET place = automation_installation.place RETURNING place
"""


def here() -> str:
    """Server and database."""
    server = statements.value(SERVER) if statements.value(MAY_ASK) else ""
    return f"{server}/{statements.value(DATABASE)}"


def seen(place: str) -> str:
    """Where these tables were seen last: this place where nobody has looked before. Locked until the commit."""
    return str(statements.value(SEEN, [place]))


def settle(place: str) -> None:
    """From now on this is the place."""
    statements.count("UPDATE automation_installation SET place = %s, since = automation_now() WHERE id = 1", [place])
