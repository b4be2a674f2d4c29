"""`python -m hapax.sql outbox|effects postgres|sqlite` prints a table."""

from __future__ import annotations

import argparse
import sys

from hapax.sql.tables import EFFECTS, OUTBOX


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hapax.sql", description="Prints a table for your own database")
    parser.add_argument("table", choices=["outbox", "effects"])
    parser.add_argument("dialect", choices=["postgres", "sqlite"])
    options = parser.parse_args()
    print({"outbox": OUTBOX, "effects": EFFECTS}[options.table][options.dialect], end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
