"""What others wrote is named with source, version, hash and licence; what we serve names no address of others."""

import base64
import hashlib
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = tomllib.loads((ROOT / "VENDOR.toml").read_text())["file"]
FOLDERS = [ROOT / "tests/vendor", ROOT / "automation/static/automation/vendor"]
OWN = sorted((ROOT / "automation/static/automation").rglob("*.*"))


@pytest.mark.parametrize("entry", FILES, ids=lambda entry: entry["name"])
def test_a_vendored_file_is_the_one_that_is_named(entry):
    found = hashlib.sha384((ROOT / entry["path"]).read_bytes()).digest()
    assert base64.b64encode(found).decode() == entry["sha384"]
    assert entry["version"] in entry["path"]
    assert all((ROOT / path).is_file() for path in entry["licence_files"])


def test_every_vendored_file_is_named():
    named = {path for entry in FILES for path in (entry["path"], *entry["licence_files"])}
    there = {str(path.relative_to(ROOT)) for folder in FOLDERS for path in folder.rglob("*") if path.is_file()}
    assert there == named


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_what_we_serve_asks_nobody_else_and_evaluates_nothing(path):
    text = path.read_text().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|\burl\(|@import|\beval\(|new Function|innerHTML\s*=[^=]", text)
