"""An application with an ORM and its migrations, in one SQLite file with Hapax: neither touches what is the other's."""

from __future__ import annotations

import asyncio
import pathlib
import re
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext

from hapax import Hapax
from hapax.testing import Server

from .conftest import ROOT

ENVIRONMENT = """
import sqlalchemy
from alembic import context

metadata = context.config.attributes["metadata"]
{include_name}
with sqlalchemy.create_engine(context.config.get_main_option("sqlalchemy.url")).connect() as connection:
    {configure}
    with context.begin_transaction():
        context.run_migrations()
"""
SCRIPT = '''"""${message}"""
import sqlalchemy as sa
from alembic import op
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
def upgrade():
    ${upgrades if upgrades else "pass"}
def downgrade():
    ${downgrades if downgrades else "pass"}
'''


def documented() -> tuple[str, str]:
    """The filter, and how it is handed to Alembic, as docs/start.md has them."""
    text = (ROOT / "docs" / "start.md").read_text()
    found = re.search(r"```py\n(def include_name.*?)\n\n(context\.configure.*?)\n```", text, re.DOTALL)
    assert found
    return found[1], found[2]


def models(*, with_note: bool) -> sa.MetaData:
    metadata = sa.MetaData()
    columns = [sa.Column("note", sa.String)] if with_note else []
    sa.Table("orders", metadata, sa.Column("id", sa.Integer, primary_key=True), *columns)
    sa.Table("events", metadata, sa.Column("id", sa.Integer, primary_key=True))  # the engine has events of its own
    return metadata


class Application:
    def __init__(self, folder: pathlib.Path) -> None:
        self.file = folder / "app.db"
        scripts = folder / "migrations"
        (scripts / "versions").mkdir(parents=True)
        include_name, configure = documented()
        (scripts / "env.py").write_text(ENVIRONMENT.format(include_name=include_name, configure=configure))
        (scripts / "script.py.mako").write_text(SCRIPT)
        self.config = Config()
        self.config.set_main_option("script_location", str(scripts))
        self.config.set_main_option("sqlalchemy.url", f"sqlite:///{self.file}")

    def migrate_to(self, metadata: sa.MetaData) -> str:
        """Lets Alembic write the migration, runs it, and gives its text."""
        self.config.attributes["metadata"] = metadata
        revision: Any = command.revision(self.config, "next", autogenerate=True)
        command.upgrade(self.config, "head")
        return pathlib.Path(revision.path).read_text()

    def run(self, *statements: str) -> list[Any]:
        with sqlite3.connect(self.file) as connection:
            rows: list[Any] = []
            for statement in statements:
                rows = connection.execute(statement).fetchall()
        connection.close()
        return rows

    def objects(self, pattern: str) -> list[Any]:
        return self.run(f"SELECT type, name, sql FROM sqlite_schema WHERE tbl_name {pattern} ORDER BY name")


@pytest.fixture
def application(tmp_path: pathlib.Path) -> Application:
    made = Application(tmp_path)
    made.migrate_to(models(with_note=False))
    made.run("INSERT INTO orders VALUES (1)", "PRAGMA user_version = 3", "PRAGMA application_id = 7")
    return made


@pytest.fixture
def engine(application: Application, tmp_path: pathlib.Path) -> Iterator[Server]:
    running = Server(tmp_path, f"sqlite:{application.file}").start()
    yield running
    running.stop()


OURS, THEIRS = "LIKE 'hapax^_%' ESCAPE '^'", "NOT LIKE 'hapax^_%' ESCAPE '^'"


def submit(server: Server) -> bool:
    """Whether the task of that key was created just now."""

    async def main() -> bool:
        async with Hapax(server.url) as app:
            handle = await app.submit("charge", {"order": 1}, idempotency_key="order-1")
            return handle.created

    return asyncio.run(main())


def test_the_engine_adopts_a_file_with_migrations(application: Application, tmp_path: pathlib.Path) -> None:
    before = application.objects(THEIRS)
    server = Server(tmp_path, f"sqlite:{application.file}").start()
    assert submit(server)
    server.stop()
    assert application.objects(THEIRS) == before
    assert application.objects(OURS)
    assert application.run("PRAGMA user_version") == [(3,)]
    assert application.run("PRAGMA application_id") == [(7,)]
    assert application.run("SELECT id FROM orders") == [(1,)]


def test_a_migration_beside_a_running_engine_leaves_its_tables_alone(application: Application, engine: Server) -> None:
    assert submit(engine)
    before = application.objects(OURS)
    written = application.migrate_to(models(with_note=True))
    assert "note" in written
    assert "hapax_" not in written
    assert application.objects(OURS) == before
    assert application.run("SELECT id, note FROM orders") == [(1, None)]
    assert not submit(engine)  # the task of before
    assert application.run("PRAGMA user_version") == [(3,)]


def test_nothing_is_left_to_migrate_with_the_documented_filter(application: Application, engine: Server) -> None:
    metadata = models(with_note=False)
    namespace: dict[str, Any] = {}
    exec(documented()[0], namespace)
    with sa.create_engine(f"sqlite:///{application.file}").connect() as connection:
        filtered = MigrationContext.configure(connection, opts={"include_name": namespace["include_name"]})
        assert compare_metadata(filtered, metadata) == []
        all_of_it = compare_metadata(MigrationContext.configure(connection), metadata)
    dropped = {change[1].name for change in all_of_it if change[0] == "remove_table"}
    assert "hapax_executions" in dropped  # that is what the filter is for


def test_the_first_migration_may_come_after_the_engine(tmp_path: pathlib.Path) -> None:
    application = Application(tmp_path)
    server = Server(tmp_path, f"sqlite:{application.file}").start()
    assert submit(server)
    written = application.migrate_to(models(with_note=False))
    assert "hapax_" not in written
    assert not submit(server)
    server.stop()
