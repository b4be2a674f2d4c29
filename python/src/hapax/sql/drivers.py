"""Statements through the caller's own connection, in the caller's own transaction.

No driver is imported: the connection at hand says which one it is. Statements are written with `?` for parameters.
"""

from __future__ import annotations

import inspect
import itertools
import re
from typing import Any, Protocol

from hapax.errors import InvalidRequest

Rows = list[tuple[Any, ...]]


class Driver(Protocol):
    """One way of speaking to a database. `dialect` is `postgres` or `sqlite`."""

    dialect: str

    async def run(self, statement: str, *parameters: Any) -> Rows:
        """Runs a statement; the rows that it returns."""
        ...

    async def commits_each(self) -> bool:
        """Whether every statement would be committed by itself: nobody has begun a transaction, and nobody will."""
        ...

    async def begin(self) -> None:
        """Begins a transaction, where the driver does not do that by itself."""
        ...

    async def end(self, *, commit: bool) -> None:
        """Commits or rolls back."""
        ...


class _Base:
    dialect = "postgres"

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    async def begin(self) -> None:
        return

    async def end(self, *, commit: bool) -> None:
        ended = self.connection.commit() if commit else self.connection.rollback()
        if inspect.isawaitable(ended):
            await ended


class _Sqlite3(_Base):
    dialect = "sqlite"

    async def run(self, statement: str, *parameters: Any) -> Rows:
        cursor = self.connection.cursor()
        cursor.row_factory = None  # whatever the caller's rows are like
        rows: Rows = cursor.execute(statement, parameters).fetchall()
        return rows

    async def commits_each(self) -> bool:
        if self.connection.in_transaction:
            return False
        autocommit = getattr(self.connection, "autocommit", -1)  # from 3.12; -1 stands for the old way
        return self.connection.isolation_level is None if autocommit == -1 else bool(autocommit)


class _Psycopg(_Base):
    async def run(self, statement: str, *parameters: Any) -> Rows:
        with self._cursor() as cursor:
            cursor.execute(statement.replace("?", "%s"), parameters)
            return list(cursor.fetchall()) if cursor.description else []

    def _cursor(self) -> Any:
        from psycopg.rows import tuple_row  # type: ignore[import-not-found,unused-ignore]

        return self.connection.cursor(row_factory=tuple_row)

    async def commits_each(self) -> bool:
        return bool(self.connection.autocommit) and self.connection.info.transaction_status.name == "IDLE"


class _AsyncPsycopg(_Psycopg):
    async def run(self, statement: str, *parameters: Any) -> Rows:
        async with self._cursor() as cursor:
            await cursor.execute(statement.replace("?", "%s"), parameters)
            return list(await cursor.fetchall()) if cursor.description else []


class _Asyncpg(_Base):
    _begun: Any = None

    async def run(self, statement: str, *parameters: Any) -> Rows:
        numbers = itertools.count(1)
        numbered = re.sub(r"\?", lambda match: f"${next(numbers)}", statement)
        return [tuple(row) for row in await self.connection.fetch(numbered, *parameters)]

    async def commits_each(self) -> bool:
        return not self.connection.is_in_transaction()

    async def begin(self) -> None:
        if self.connection.is_in_transaction():  # its own would be a part of that one, and commit nothing
            raise InvalidRequest(
                "a relay commits by itself, and this asyncpg connection is in a transaction: give it one that is not",
                code="InTransaction",
            )
        self._begun = self.connection.transaction()
        await self._begun.start()

    async def end(self, *, commit: bool) -> None:
        begun, self._begun = self._begun, None
        if begun is not None:
            await (begun.commit() if commit else begun.rollback())


class _SqlAlchemy(_Base):
    """A Connection or Session."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        bind = connection.get_bind() if hasattr(connection, "get_bind") else connection
        self.dialect = {"postgresql": "postgres"}.get(bind.dialect.name, bind.dialect.name)

    def _prepare(self, statement: str, parameters: tuple[Any, ...]) -> tuple[Any, dict[str, Any]]:
        from sqlalchemy import text  # type: ignore[import-not-found,unused-ignore]

        numbers = itertools.count()
        named = re.sub(r"\?", lambda match: f":p{next(numbers)}", statement.replace("::", r"\:\:"))
        return text(named), {f"p{number}": value for number, value in enumerate(parameters)}

    async def run(self, statement: str, *parameters: Any) -> Rows:
        result = self.connection.execute(*self._prepare(statement, parameters))
        if inspect.isawaitable(result):
            result = await result
        return [tuple(row) for row in result.fetchall()] if result.returns_rows else []

    async def commits_each(self) -> bool:
        connection = self.connection
        if hasattr(connection, "get_bind"):  # a session
            connection = connection.connection()
            if inspect.isawaitable(connection):
                connection = await connection
        options: dict[str, Any] = getattr(connection, "sync_connection", connection).get_execution_options()
        return options.get("isolation_level") == "AUTOCOMMIT"


class _Django(_Base):
    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        vendor = str(connection.vendor)
        self.dialect = {"postgresql": "postgres"}.get(vendor, vendor)

    async def run(self, statement: str, *parameters: Any) -> Rows:
        with self.connection.cursor() as cursor:
            cursor.execute(statement.replace("?", "%s"), parameters)
            return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    async def commits_each(self) -> bool:
        return not self.connection.in_atomic_block and bool(self.connection.get_autocommit())


_BY_CLASS: dict[tuple[str, str], Any] = {
    ("sqlite3", "Connection"): _Sqlite3,
    ("psycopg", "Connection"): _Psycopg,
    ("psycopg", "AsyncConnection"): _AsyncPsycopg,
    ("asyncpg", "Connection"): _Asyncpg,
    ("asyncpg", "PoolConnectionProxy"): _Asyncpg,
    ("sqlalchemy", "Connection"): _SqlAlchemy,
    ("sqlalchemy", "Session"): _SqlAlchemy,
    ("sqlalchemy", "scoped_session"): _SqlAlchemy,
    ("sqlalchemy", "AsyncConnection"): _SqlAlchemy,
    ("sqlalchemy", "AsyncSession"): _SqlAlchemy,
    ("sqlalchemy", "async_scoped_session"): _SqlAlchemy,
}


def is_connection(value: Any) -> bool:
    """Whether it is a connection, or session, of one of the drivers that are known."""
    known = any((base.__module__.partition(".")[0], base.__name__) in _BY_CLASS for base in type(value).__mro__)
    return known or (hasattr(value, "vendor") and hasattr(value, "cursor"))  # Django, also its proxy


def driver_of(connection: Any) -> Driver:
    """The driver of a connection: sqlite3, psycopg 3, asyncpg, SQLAlchemy 2 or Django."""
    if not is_connection(connection):
        raise InvalidRequest(
            f"{type(connection).__module__}.{type(connection).__name__} is no connection that Hapax knows; use one "
            "of sqlite3, psycopg 3, asyncpg, SQLAlchemy (Connection, Session, async or not) or django.db.connection"
        )
    classes = (_BY_CLASS.get((base.__module__.partition(".")[0], base.__name__)) for base in type(connection).__mro__)
    found: Driver = next((each for each in classes if each is not None), _Django)(connection)
    if found.dialect not in ("postgres", "sqlite"):
        raise InvalidRequest(f"the outbox and the inbox are for PostgreSQL and SQLite, not for {found.dialect}")
    return found


async def driver_in_transaction(connection: Any, what: str) -> Driver:
    """The driver of a connection that is in a transaction of the caller, or will be with the next statement."""
    driver = driver_of(connection)
    if await driver.commits_each():
        raise InvalidRequest(
            f"{what} belongs to a transaction of yours, and this connection is in none: it commits every statement by "
            "itself. Begin one first",
            code="NoTransaction",
        )
    return driver
