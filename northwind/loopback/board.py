"""One page that shows the ledgers of all servers together."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

from northwind.loopback import pages
from northwind.loopback.http import Request, Response, page

NEWEST = 200
TAIL = 512 * 1024  # bytes read from the end of a ledger


class Board:
    """Reads `<name>.jsonl` files of a directory whenever the page is asked for."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def answer(self, request: Request) -> Response:
        """The page, or its style."""
        path, _mark, query = request.path.partition("?")
        if path == pages.STYLE_PATH:
            return Response(body=pages.STYLE.encode(), kind="text/css")
        rows = await asyncio.to_thread(self.rows)
        return page(pages.board(rows, follow="follow=1" in query))

    def rows(self) -> list[pages.Row]:
        """The newest entries of all ledgers, newest first."""
        found = [
            pages.row_of(ledger.stem, entry) for ledger in self._directory.glob("*.jsonl") for entry in _newest(ledger)
        ]
        return sorted(found, key=lambda row: row.at, reverse=True)[:NEWEST]


def _newest(ledger: Path) -> Iterator[dict[str, object]]:
    with ledger.open("rb") as file:
        file.seek(0, 2)
        start = max(file.tell() - TAIL, 0)
        file.seek(start)
        lines = file.read().splitlines()
    for line in lines[1 if start else 0 :][-NEWEST:]:
        try:
            yield json.loads(line)
        except ValueError:
            continue  # a line that is being written
