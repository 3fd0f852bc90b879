"""Gives an experiment a database of its own on the same server, migrated, and takes it away afterwards."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.core.management import call_command
from django.db import connection
from psycopg import sql

from automation.queue import exists
from northwind.database import VARIABLE, renamed


@contextmanager
def scratch_database(purpose: str) -> Iterator[str]:
    """Inside the block Django, and every process started meanwhile, uses a new database; answers its URL.

    It is named after the present database, the purpose and this process. Those of experiments that were killed are
    dropped first: their process is gone and nobody is connected to them.
    """
    url, base = os.environ[VARIABLE], str(connection.settings_dict["NAME"])
    name = f"{base}_{purpose}_{os.getpid()}"
    with psycopg.connect(url, autocommit=True) as server:
        for left in _left_behind(server, f"{base}_{purpose}_"):
            server.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(left)))
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        _use(renamed(url, name), name)
        call_command("migrate", verbosity=0)
        yield os.environ[VARIABLE]
    finally:
        _use(url, base)
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def _use(url: str, name: str) -> None:
    connection.close()
    connection.settings_dict["NAME"] = name
    os.environ[VARIABLE] = url


def _left_behind(server: psycopg.Connection[tuple[str]], prefix: str) -> list[str]:
    found = server.execute(
        "SELECT d.datname FROM pg_database d WHERE starts_with(d.datname, %s)"
        " AND NOT EXISTS (SELECT 1 FROM pg_stat_activity a WHERE a.datname = d.datname)",
        [prefix],
    ).fetchall()
    names = [row[0] for row in found if re.fullmatch(r"\d+", row[0].removeprefix(prefix))]
    return [name for name in names if not exists(int(name.removeprefix(prefix)))]
