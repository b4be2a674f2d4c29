"""Databases of callers, through every driver that the outbox and the inbox know."""

from __future__ import annotations

import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator
from typing import Any

from hapax.sql.tables import EFFECTS, OUTBOX


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Postgres:
    """A cluster of its own, in a folder that the user postgres can reach."""

    def __init__(self) -> None:
        programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parts[-2]))[-1]
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hapax-python-"))
        self.folder.chmod(0o755)
        data = self.folder / "data"
        data.mkdir()
        as_user: list[str] = []
        if os.geteuid() == 0:  # it refuses to run as root
            user = pwd.getpwnam("postgres")
            os.chown(data, user.pw_uid, user.pw_gid)
            as_user = ["--reuid=postgres", "--regid=postgres", "--init-groups"]
        self.port = free_port()
        initdb = ["setpriv", *as_user, str(programs / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust"]
        subprocess.run([*initdb, "-E", "UTF8", "--locale=C.UTF-8"], check=True, capture_output=True)
        command = [str(programs / "postgres"), "-D", str(data), "-p", str(self.port), "-c", "fsync=off"]
        command += ["-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={data}"]
        self.process = subprocess.Popen(
            ["setpriv", *as_user, "--pdeathsig", "INT", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        import psycopg

        for _ in range(200):
            with contextlib.suppress(psycopg.OperationalError):
                psycopg.connect(self.url).close()
                return
            time.sleep(0.05)
        raise AssertionError("PostgreSQL did not start")

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(20)
        shutil.rmtree(self.folder, ignore_errors=True)


class Database:
    """A database with our tables and one of the caller's, reached by one driver."""

    drivers = (
        "sqlite3",
        "sqlalchemy-sqlite",
        "psycopg",
        "psycopg-async",
        "asyncpg",
        "sqlalchemy-session",
        "sqlalchemy-async",
        "django",
    )

    def __init__(self, driver: str, folder: pathlib.Path, postgres: Postgres | None, *, is_new: bool = True) -> None:
        self.driver = driver
        self.file = folder / "caller.db"
        self.postgres = postgres
        self.dialect = "sqlite" if "sqlite" in driver or driver == "django" else "postgres"
        if not is_new:
            return
        for statement in (OUTBOX[self.dialect], EFFECTS[self.dialect]):
            self.execute(statement)
        self.execute("CREATE TABLE IF NOT EXISTS payments (order_id integer, effect text)")
        for table in ("hapax_outbox", "hapax_effects", "payments"):
            self.execute(f"DELETE FROM {table}")

    def execute(self, statement: str) -> list[Any]:
        """Apart from the driver under test, committed at once."""
        if self.dialect == "sqlite":
            with contextlib.closing(sqlite3.connect(self.file, timeout=20)) as connection, connection:
                return connection.execute(statement).fetchall()
        import psycopg

        assert self.postgres is not None
        with psycopg.connect(self.postgres.url, autocommit=True) as session:
            cursor = session.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        """A connection in a transaction, which is committed unless the block raises."""
        url = self.postgres.url if self.postgres else ""
        if self.driver == "sqlite3":
            with contextlib.closing(sqlite3.connect(self.file, timeout=20)) as connection, connection:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
        elif self.driver == "sqlalchemy-sqlite":
            import sqlalchemy

            engine = sqlalchemy.create_engine(f"sqlite:///{self.file}")
            with engine.begin() as connection:
                yield connection
            engine.dispose()
        elif self.driver == "psycopg":
            import psycopg

            with psycopg.connect(url) as connection:
                yield connection
        elif self.driver == "psycopg-async":
            import psycopg

            async with await psycopg.AsyncConnection.connect(url) as connection:
                yield connection
        elif self.driver == "asyncpg":
            import asyncpg

            connection = await asyncpg.connect(url)
            try:
                async with connection.transaction():
                    yield connection
            finally:
                await connection.close()
        elif self.driver == "sqlalchemy-session":
            import sqlalchemy
            from sqlalchemy.orm import Session

            engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
            with Session(engine) as session, session.begin():
                yield session
            engine.dispose()
        elif self.driver == "sqlalchemy-async":
            from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

            made = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
            async with AsyncSession(made) as session, session.begin():
                yield session
            await made.dispose()
        else:
            connection = self._django()
            connection.ensure_connection()
            connection.set_autocommit(False)
            try:
                yield connection
                connection.commit()
            except BaseException:
                connection.rollback()
                raise
            finally:
                connection.close()

    @contextlib.asynccontextmanager
    async def relay_connection(self) -> AsyncIterator[Any]:
        """A connection on which a relay commits by itself."""
        if self.driver != "asyncpg":
            async with self.transaction() as connection:
                yield connection
            return
        import asyncpg

        assert self.postgres is not None
        connection = await asyncpg.connect(self.postgres.url)
        try:
            yield connection
        finally:
            await connection.close()

    def _django(self) -> Any:
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
        from django.conf import settings
        from django.db.backends.sqlite3.base import DatabaseWrapper

        if not settings.configured:
            settings.configure(USE_TZ=True)
        options = {
            "NAME": str(self.file),
            "TIME_ZONE": None,
            "CONN_MAX_AGE": 0,
            "CONN_HEALTH_CHECKS": False,
            "OPTIONS": {"timeout": 20},
            "AUTOCOMMIT": True,
            "ATOMIC_REQUESTS": False,
            "ENGINE": "django.db.backends.sqlite3",
            "USER": "",
            "PASSWORD": "",
            "HOST": "",
            "PORT": "",
            "TEST": {},
        }
        return DatabaseWrapper(options)


async def insert_payment(connection: Any, order_id: int, effect: str) -> None:
    """What a caller would write in the same transaction."""
    from hapax.sql.drivers import driver_of

    await driver_of(connection).run("INSERT INTO payments VALUES (?, ?)", order_id, effect)
