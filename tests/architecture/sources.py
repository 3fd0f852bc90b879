"""Reads the product's own source for the tests of its architecture."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("northwind", "automation", "tenants")


@dataclass(frozen=True)
class Module:
    """One Python file."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    def calls(self, *names: str) -> Iterator[ast.Call]:
        """Find calls of a function or method by its bare name."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and called(node) in names:
                yield node


def called(node: ast.Call) -> str:
    target = node.func
    return target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")


@lru_cache
def modules() -> tuple[Module, ...]:
    """Every module of the product but migrations, which are written once."""
    paths = [ROOT / "manage.py", *(path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))]
    return tuple(Module(path) for path in paths if "migrations" not in path.parts)


def inside(name: str, *folders: str) -> bool:
    return any(name.startswith(f"{folder}/") or name == folder for folder in folders)
