"""Your own database: the outbox (submit in your transaction) and the inbox (effects that happen once).

`drivers.py` speaks through the connection that you already have: sqlite3, psycopg 3, asyncpg, SQLAlchemy, Django.
`tables.py` has the two tables; `python -m hapax.sql outbox postgres` prints one.
"""
