import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

import pytest
from postgres import Postgres


@pytest.fixture
def new_postgres():
    """Starts databases and ends them with the test."""
    made = []

    def new():
        made.append(Postgres())
        return made[-1]

    yield new
    for postgres in reversed(made):
        postgres.close()


@pytest.fixture
def postgres(new_postgres):
    """A running PostgreSQL with an empty database `hapax`."""
    made = new_postgres().create().start()
    made.ask("CREATE DATABASE hapax")
    return made
