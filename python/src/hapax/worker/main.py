"""The command `hapax-worker`."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import logging
import os
import sys
from typing import TYPE_CHECKING

from hapax._version import __version__
from hapax.app import Hapax
from hapax.durations import to_seconds
from hapax.errors import Error

if TYPE_CHECKING:
    from collections.abc import Sequence


def find_app(name: str) -> Hapax:
    """The app of `module:attribute`, as in `orders:app`; the attribute is `app` if it is left out."""
    module_name, _, attribute = name.partition(":")
    sys.path.insert(0, os.getcwd())
    found: object = importlib.import_module(module_name)
    for part in (attribute or "app").split("."):
        found = getattr(found, part)
    if not isinstance(found, Hapax):
        raise TypeError(f"{name} is {type(found).__name__}, not a hapax.Hapax")
    return found


def _duration(text: str) -> str:
    to_seconds(text)
    return text


def make_parser() -> argparse.ArgumentParser:
    """The arguments of working and checking."""
    parser = argparse.ArgumentParser(
        prog="hapax-worker",
        description="Runs the tasks and workflows of an app: hapax-worker orders:app",
        epilog="`hapax-worker replay orders:app` runs open workflows against the code without committing anything.",
    )
    parser.add_argument("app", metavar="MODULE:APP", help="where the app is: orders:app")
    parser.add_argument("--url", help="another engine than the app's own")
    parser.add_argument("--queues", type=lambda text: text.split(","), help="a,b; else those of the app's tasks")
    parser.add_argument("--concurrency", type=int, default=64, help="async handlers at once (%(default)s)")
    parser.add_argument("--threads", type=int, default=8, help="plain handlers at once (%(default)s)")
    parser.add_argument("--processes", type=int, help="cpu=True handlers at once; else one for each processor")
    parser.add_argument("--lease", type=_duration, default="60s", help="of what it claims (%(default)s)")
    parser.add_argument("--grace", type=_duration, default="30s", help="for what runs at SIGTERM (%(default)s)")
    parser.add_argument("--kept-runs", type=int, default=1000, help="workflows kept in memory (%(default)s)")
    parser.add_argument("--until-idle", type=_duration, help="ends after so long without work")
    parser.add_argument("--name", help="of this worker, for people to read")
    parser.add_argument("--relay", action="store_true", help="also relays what the app's outboxes have")
    parser.add_argument("--reload", action="store_true", help="starts again when a source file changes")
    parser.add_argument("--check", action="store_true", help="compares the app with the server, and ends")
    parser.add_argument("--verbose", action="store_true", help="logs more")
    parser.add_argument("--version", action="version", version=f"hapax-worker {__version__}")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0] == "replay":
        from hapax.worker.replay import main as replay

        return replay(given[1:])
    options = make_parser().parse_args(given)
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    if options.reload:
        from hapax.worker.reload import run_and_reload

        return run_and_reload([argument for argument in given if argument != "--reload"])
    try:
        app = find_app(options.app)
    except (ImportError, AttributeError, TypeError) as error:
        print(f"hapax-worker: {options.app}: {error}", file=sys.stderr)
        return 2
    if options.url:
        app.url = options.url
    try:
        if options.check:
            from hapax.worker.check import check

            return check(app)
        return _work(app, options)
    except Error as error:
        print(f"hapax-worker: {error}", file=sys.stderr)
        return 1
    finally:
        app.close()


def _work(app: Hapax, options: argparse.Namespace) -> int:
    from hapax.worker.worker import run_blocking

    log = logging.getLogger("hapax.worker")
    log.info("working on %s with %d tasks, %d workflows", app.url, len(app.registry.tasks), len(app.registry.workflows))
    with app.relay() if options.relay else contextlib.nullcontext():
        worker = run_blocking(
            lambda: app.worker(
                queues=options.queues,
                concurrency=options.concurrency,
                threads=options.threads,
                processes=options.processes,
                lease=options.lease,
                grace=options.grace,
                until_idle=options.until_idle,
                kept_runs=options.kept_runs,
                name=options.name,
            )
        )
    if worker.left_running:  # the interpreter would wait for their threads
        worker.kill_processes()
        app.close()
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
