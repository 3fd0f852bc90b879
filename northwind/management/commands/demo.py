"""Runs the whole product on this machine, filled with three tenants: database, web server, workers, and the outside."""

import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import InterfaceError, OperationalError, connection

from northwind.accounts import like
from northwind.database import server
from northwind.outside import HOST, free_port, start_receiver, web_address
from northwind.process_tree import PartDiedError, ProcessTree
from northwind.seed.files import SLUGS, tenant_file
from northwind.seed.fill import PASSWORD, ForeignDatabaseError, fill, logins

ABOUT = __doc__

PORT = 8000
RECEIVERS = {"pager": 8101, "webhooks": 8102, "sms": 8103, "page": 8100}
MAIL_PORTS = (8125, 8104)  # of the mail server, and of its page
TIME_SCALE = 1 / 360  # two hours take twenty seconds
WORKERS = 2
ONE_DEMO = 0x6E77_0001  # the advisory lock that a demo holds on its database
WORKERS_GRACE = 75.0  # seconds: effects that are on their way may end
LOGIN = "  {:<14}{:<11}{:<20}{}"  # a line of the table of logins
PATIENCE = 5  # seconds that the database may be away
WIDEST = 10  # characters of a part's name
MANAGE = (sys.executable, "manage.py")


class Command(BaseCommand):
    """One process tree: what a part says is shown with its name, and when one ends all end."""

    help = f"{ABOUT} {__doc__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """The port, and whether waits take as long as they say."""
        parser.add_argument("--port", type=int, default=PORT, help="of the web server; another one where it is taken")
        parser.add_argument("--real-time", action="store_true", help="do not shorten the waits of rules")

    def handle(self, *args: Any, **options: Any) -> None:
        """Runs until Ctrl-C, SIGTERM or SIGHUP; exit code 1 when a part ends by itself."""
        if settings.SECURE_SSL_REDIRECT:
            raise CommandError(
                "The demo makes logins with a password that everybody knows: it doesn't run with HTTPS set."
            )
        try:
            with ProcessTree(self._say) as tree:
                tree.environment |= self._environment(real_time=options["real_time"])
                self._run(tree, options)
        except (PartDiedError, ForeignDatabaseError) as error:
            raise CommandError(str(error)) from error
        self._tell("Stopped.")

    def _environment(self, *, real_time: bool) -> dict[str, str]:
        return {
            "AUTOMATION_ALLOW_LOOPBACK": "1",
            "AUTOMATION_TIME_SCALE": repr(1.0 if real_time else TIME_SCALE),
            "PYTHONUNBUFFERED": "1",
            "WORKERS": str(WORKERS),
        }

    def _run(self, tree: ProcessTree, options: Mapping[str, Any]) -> None:
        self._tell("Preparing the database …")
        tree.run("migrate", [*MANAGE, "migrate", "--verbosity", "0"])
        if not _take_database():
            raise CommandError("A demo runs on this database already.")
        addresses = self._receivers(tree)
        if tree.asked:
            return
        made = fill(addresses)
        self._tell(f"Tenants: {', '.join(made) or 'as they were'}.")
        web = self._web(tree, options["port"])
        tree.environment["AUTOMATION_SITE"] = web
        workers = tree.start("workers", [*MANAGE, "run_workers"], grace=WORKERS_GRACE)
        tree.wait_for(workers, lambda line: "started" in line)
        if tree.asked:
            return
        self._greet(web, addresses, real_time=options["real_time"])
        away = 0  # turns; a database that has restarted is back within moments
        while tree.turn(1.0):
            away = 0 if _has_database(again=away > 0) else away + 1
            if away == PATIENCE:
                raise PartDiedError("the database ended")
        self._tell("Stopping …")

    def _receivers(self, tree: ProcessTree) -> dict[str, str]:
        """Starts what stands for the outside; the mail server's address goes to the parts that follow."""
        ledgers = _ledgers()
        smtp, page = map(free_port, MAIL_PORTS)
        start_receiver(tree, "smtp", ledgers=ledgers, port=smtp, options=["--page-port", str(page)])
        tree.environment["EMAIL_URL"] = f"smtp://{HOST}:{smtp}"
        found = {}
        for name, wanted in RECEIVERS.items():
            port = free_port(wanted)
            start_receiver(tree, name, ledgers=ledgers, port=port)
            found[name] = web_address(port)
        return found

    def _web(self, tree: ProcessTree, wanted: int) -> str:
        port = free_port(wanted)
        command = [sys.executable, "-m", "gunicorn", "northwind.wsgi", "--worker-class", "gthread", "--workers", "2"]
        command += ["--threads", "8", "--timeout", "30", "--bind", f"{HOST}:{port}", "--no-control-socket"]
        part = tree.start("web", command, environment={"DB_POOL": "1"})
        tree.wait_for(part, lambda line: "Listening at" in line)
        address = web_address(port)
        while tree.turn() and not _answers(f"{address}/accounts/login/"):
            pass
        return address

    def _greet(self, web: str, addresses: Mapping[str, str], *, real_time: bool) -> None:
        names = {slug: tenant_file(slug)["name"] for slug in SLUGS}
        lines = ["", f"Northwind is at {web}/", f"What arrives outside is at {addresses['page']}/", ""]
        lines.append(f"Log in with the password “{PASSWORD}” as one of these:")
        lines.append(LOGIN.format("Tenant", "Role", "User name", "Page"))
        for login in logins():
            where = names[login.tenant] if login.tenant else "(all)"
            place = f"{web}/t/{login.tenant}/" if login.tenant else f"{web}/admin/"
            lines.append(LOGIN.format(where, login.role, login.name, place))
        lines.append("")
        if not real_time:
            lines.append("The waits of rules are shortened: two hours take 20 seconds (--real-time leaves them alone).")
        lines += ["Ctrl-C stops all of it.", ""]
        self._tell("\n".join(lines))

    def _tell(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()

    def _say(self, name: str, line: str) -> None:
        if not line.startswith('{"port"') and not _is_chatter(line):
            self._tell(f"{name:<{WIDEST}}| {line}")


def _take_database() -> bool:
    """Has the database for this demo alone; False where another one has it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [ONE_DEMO])
        return bool(cursor.fetchone() == (True,))


def _has_database(*, again: bool) -> bool:
    """Whether the database is there; `again`: it was away, and with it what held it for this demo."""
    try:
        if again and not _take_database():
            raise CommandError("Another demo has taken this database meanwhile.")
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except (OperationalError, InterfaceError):
        connection.close()
        return False
    return True


def _ledgers() -> Path:
    """The folder of what arrives, kept from run to run; a passing one where this user may not write there."""
    data = server().data
    folder = data / "ledgers"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        like(data, folder)
        for name in ("smtp", *RECEIVERS):
            (folder / f"{name}.jsonl").open("a").close()
            like(data, folder / f"{name}.jsonl")
    except PermissionError:
        return Path(tempfile.mkdtemp(prefix="northwind-ledgers-"))
    return folder


def _is_chatter(line: str) -> bool:
    """What the task queue says about its own processes."""
    return line.endswith("[django-q]") and "[info " in line


def _answers(address: str) -> bool:
    """Whether a page is answered well; an answer that is wrong is a PartDiedError, for waiting won't mend it."""
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310 an address of this machine
            return int(answer.status) == 200
    except urllib.error.HTTPError as error:
        raise PartDiedError(f"web answered {address} with {error.code}") from error
    except OSError:
        return False
