"""The real server on the test database, and a real browser on it; left out, and counted, where there is no Chromium."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, Route, sync_playwright

from tests.e2e.scene import Scene

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
ROOT = Path(__file__).parents[2]
AXE = ROOT / "tests/vendor/axe-core/4.14.1/axe.min.js"
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--force-color-profile=srgb"),
    *("--font-render-hinting=none", "--disable-dev-shm-usage"),
]
PATIENCE = 20  # seconds until the server must answer
REPORT_VIOLATIONS = (
    "addEventListener('securitypolicyviolation',"
    "e => console.error('CSP ' + e.violatedDirective + ' ' + e.blockedURI + ' ' + e.sourceFile))"
)
left_out: list[str] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the browser's tests out where there is no browser."""
    here = Path(__file__).parent
    for item in items:
        if CHROMIUM is None and here in item.path.parents:
            left_out.append(item.name)
            item.add_marker(pytest.mark.skip(reason="no Chromium on PATH or in CHROMIUM"))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many were left out, and which."""
    if left_out:
        terminalreporter.section("browser tests left out")
        terminalreporter.write_line(f"{len(left_out)}, for want of a Chromium on PATH or in CHROMIUM:")
        for name in left_out:
            terminalreporter.write_line(f"  {name}")


@pytest.fixture(scope="session")
def static_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The static files as they are shipped: collected, with names that follow their content."""
    folder = tmp_path_factory.mktemp("static")
    command = [sys.executable, "manage.py", "collectstatic", "--noinput", "--verbosity=0"]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "STATIC_ROOT": str(folder)}, check=True, timeout=120)
    return folder


@pytest.fixture(scope="session")
def server(django_db_setup: None, static_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real server on the test database."""
    log = tmp_path_factory.mktemp("server") / "log"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "gunicorn",
        "northwind.wsgi:application",
        f"--bind=127.0.0.1:{port}",
        "--threads=4",
    ]
    env = {**os.environ, "STATIC_ROOT": str(static_files), "DEBUG": ""}
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=out, stderr=subprocess.STDOUT)
        try:
            _wait_for(f"http://127.0.0.1:{port}/accounts/login/", process, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE)


def _wait_for(address: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Return once the server answers; fail with its log when it ends or takes too long."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urlopen(address, timeout=2):  # noqa: S310  our own server
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"The server doesn't answer:\n{log.read_text()[-3000:]}")


@pytest.fixture(scope="module")
def playwright(server: str) -> Iterator[Playwright]:
    """The driver of the browser: after the database is there, and gone before tests that want no event loop."""
    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """One Chromium for the tests of a module."""
    found = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
    yield found
    found.close()


@pytest.fixture
def orm_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The browser's driver runs an event loop in this thread, which the ORM would take for an async view."""
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")


@pytest.fixture
def open_browser(
    browser: Browser, server: str, orm_allowed: None, transactional_db: None
) -> Iterator[Callable[..., Page]]:
    """Open a page as somebody, in a window of its own; anything that goes wrong in it fails the test.

    Pages expected to be refused are named by `expected`: their status is no fault.
    """
    contexts: list[BrowserContext] = []
    faults: list[str] = []

    def open_page(scene: Scene | None = None, *, expected: tuple[int, ...] = (), **options: Any) -> Page:
        usual = {"viewport": {"width": 1280, "height": 800}, "locale": "en-GB", "timezone_id": "Europe/Berlin"}
        context = browser.new_context(base_url=server, reduced_motion="reduce", **{**usual, **options})
        contexts.append(context)
        if scene is not None:
            context.add_cookies([{**scene.cookie(), "url": server}])
        context.add_init_script(REPORT_VIOLATIONS)
        context.route("**/*", lambda route: _stay_here(route, server, faults))
        page = context.new_page()
        page.set_default_timeout(8000)
        page.on("console", lambda message: _note(message, faults, expected))
        page.on("pageerror", lambda error: faults.append(str(error)))
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


def _stay_here(route: Route, server: str, faults: list[str]) -> None:
    if route.request.url.startswith((server, "data:", "blob:")):
        route.continue_()
    else:
        faults.append(f"foreign request {route.request.url}")
        route.abort()


def _note(message: Any, faults: list[str], expected: tuple[int, ...]) -> None:
    if message.type == "error" and not any(f"status of {status}" in message.text for status in expected):
        faults.append(message.text)


def faults_of_axe(page: Page) -> list[Any]:
    """Whatever axe finds on the page that is shown: (rule, how grave, places)."""
    page.evaluate(AXE.read_text())
    found: list[Any] = page.evaluate(
        """async () => (await axe.run(document, {resultTypes: ['violations'], runOnly: {type: 'tag',
        values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}})).violations
        .map(one => [one.id, one.impact, one.nodes.map(node => node.target.join(' ') + ': ' + node.failureSummary)])"""
    )
    return found
