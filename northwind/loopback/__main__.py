"""Starts one server: `python -m northwind.loopback pager|smtp|webhooks|sms|page --port 0 --ledger FILE`."""

import argparse
import asyncio
import json
import signal
import sys
from pathlib import Path

from northwind.loopback.board import Board
from northwind.loopback.http import serve
from northwind.loopback.ledger import Ledger
from northwind.loopback.mailbox import Mailbox, serve_smtp
from northwind.loopback.receivers import RECEIVERS, Manners
from northwind.loopback.script import Drops, Script


def main(arguments: list[str] | None = None) -> None:
    """Runs one server until SIGTERM or SIGINT. Prints `{"port": n}` as one line when it listens."""
    options = _parser().parse_args(arguments)
    asyncio.run(_run(options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m northwind.loopback", description=__doc__)
    parser.add_argument("server", choices=[*RECEIVERS, "smtp", "page"])
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--ledger", type=Path, help="JSON lines of what arrived")
    parser.add_argument("--ledger-dir", type=Path, help="page: the directory of all ledgers")
    parser.add_argument("--page-port", type=int, default=0, help="smtp: the port of its page")
    parser.add_argument("--delay-ms", type=int, default=0, help="milliseconds until an answer")
    parser.add_argument("--drop", type=float, default=0.0, help="share of accepted requests that get no answer")
    parser.add_argument("--seed", type=int, default=0, help="draws which ones")
    parser.add_argument("--script", type=Path, help="prescribed answers, a JSON file")
    return parser


async def _run(options: argparse.Namespace) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    servers = await _servers(options)
    ports = dict(zip(("port", "page_port"), (server.sockets[0].getsockname()[1] for server in servers), strict=False))
    sys.stdout.write(json.dumps(ports) + "\n")
    sys.stdout.flush()
    await stop.wait()
    for server in servers:
        server.close()


async def _servers(options: argparse.Namespace) -> list[asyncio.Server]:
    if options.server == "page":
        if options.ledger_dir is None:
            raise SystemExit("page needs --ledger-dir")
        return [await serve(Board(options.ledger_dir).answer, port=options.port)]
    if options.ledger is None:
        raise SystemExit(f"{options.server} needs --ledger")
    manners = Manners(
        delay=options.delay_ms / 1000,
        drops=Drops(share=options.drop, seed=options.seed),
        script=Script(options.script),
    )
    ledger = Ledger(options.ledger)
    if options.server == "smtp":
        mailbox = Mailbox(ledger, manners)
        return [await serve_smtp(mailbox, port=options.port), await serve(mailbox.answer, port=options.page_port)]
    return [await serve(RECEIVERS[options.server](ledger, manners).answer, port=options.port)]


if __name__ == "__main__":
    main()
