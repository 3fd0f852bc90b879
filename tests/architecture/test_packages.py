"""Packages are locked, from no particular place; files of others are named."""

import base64
import hashlib
import re
import tomllib

import pytest

from tests.architecture.sources import ROOT

LOCKS = ["requirements.txt", "requirements-dev.txt"]
NAME = re.compile(r"^[A-Za-z0-9._-]+")


def project() -> dict[str, list[str]]:
    data = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    runtime: list[str] = data["dependencies"]
    return {"requirements.txt": runtime, "requirements-dev.txt": runtime + data["optional-dependencies"]["dev"]}


def name_of(requirement: str) -> str:
    found = NAME.match(requirement)
    assert found
    return found.group().lower().replace("_", "-")


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_file_names_no_host(lock):
    assert "://" not in (ROOT / lock).read_text(encoding="utf-8")


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_file_holds_every_dependency_with_hashes(lock):
    text = (ROOT / lock).read_text(encoding="utf-8")
    blocks = re.split(r"\n(?=[a-z0-9])", text)
    locked = {name_of(block): block for block in blocks if "==" in block.partition("\n")[0]}
    assert {name_of(requirement) for requirement in project()[lock]} <= set(locked)
    assert all("--hash=sha256:" in block for block in locked.values())


def test_the_development_lock_has_the_products_versions():
    product, development = ((ROOT / lock).read_text(encoding="utf-8") for lock in LOCKS)
    versions = re.compile(r"^[a-z0-9._-]+==\S+", re.MULTILINE)
    assert set(versions.findall(product)) <= set(versions.findall(development))


def test_every_file_of_others_is_as_it_was_published():
    vendored = tomllib.loads((ROOT / "VENDOR.toml").read_text(encoding="utf-8"))
    for file in vendored["file"]:
        assert {"path", "source", "version", "sha384", "licence"} <= set(file)
        digest = hashlib.sha384((ROOT / file["path"]).read_bytes()).digest()
        assert base64.b64encode(digest).decode() == file["sha384"], file["path"]


def test_the_readme_has_the_two_commands_each_on_one_line():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    install = "python3 -m venv .venv && .venv/bin/pip install -r {} && .venv/bin/pip install --no-deps -e . && "
    assert install.format("requirements.txt") + ".venv/bin/python manage.py demo" in lines
    assert install.format("requirements-dev.txt") + ".venv/bin/pytest" in lines
