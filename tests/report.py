"""Says which faults and cases the tests show (`pytest --covered`), and which long tests a plain run leaves out."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import pytest

FAULTS = range(1, 51)
UNUSED = {5}  # a number that no fault has
_covered: dict[str, dict[str, list[str]]] = {"fault": defaultdict(list), "case": defaultdict(list)}
_left_out: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--covered`."""
    parser.addoption("--covered", action="store_true", help="list the covered faults and cases; run nothing")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Notes the ids of all tests, also of those that are deselected afterwards."""
    for item in items:
        for kind, found in _covered.items():
            for marker in item.iter_markers(kind):
                found[str(marker.args[0])].append(item.nodeid)


def pytest_deselected(items: Iterable[pytest.Item]) -> None:
    """Notes the long tests that a plain run leaves out."""
    _left_out.extend(item.nodeid for item in items if item.get_closest_marker("long"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Runs nothing where only the report is asked for."""
    return True if session.config.getoption("--covered") else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Writes the report, or the names of the long tests that were left out."""
    if config.getoption("--covered"):
        for line in report():
            terminalreporter.write_line(line)
    elif _left_out:
        terminalreporter.section("left out as long", sep="-")
        for nodeid in sorted(_left_out):
            terminalreporter.write_line(nodeid)


def report() -> Iterator[str]:
    """The covered ids with the number of tests that show each, and the faults that none shows."""
    for kind, found in _covered.items():
        yield f"{kind}s covered: {len(found)}"
        for name in sorted(found, key=_in_order):
            yield f"  {name:>4}  {len(found[name])} test{'s' if len(found[name]) > 1 else ''}"
    missing = [number for number in FAULTS if number not in UNUSED and str(number) not in _covered["fault"]]
    yield f"faults not covered: {', '.join(map(str, missing)) or 'none'}"


def _in_order(name: str) -> tuple[str, int]:
    letters = name.rstrip("0123456789")
    return letters, int(name[len(letters) :] or 0)
