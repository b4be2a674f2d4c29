"""Effects in the caller's own database that happen once, whatever dies."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import typing
from typing import TYPE_CHECKING, Any

from hapax.codec import codec_of, dump_json
from hapax.sql.drivers import driver_in_transaction

if TYPE_CHECKING:
    from collections.abc import Callable


async def once_in(connection: Any, key: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What `function` returned when it ran under this key, in a transaction that was committed.

    The key's row and what the function writes through the connection are one transaction of the caller. A second
    transaction with the same key waits for the first at the primary key, and then finds its row.
    """
    driver = await driver_in_transaction(connection, "once_in")
    result = codec_of(_result_type(function))
    inserted = await driver.run(
        "INSERT INTO hapax_effects (effect_key) VALUES (?) ON CONFLICT DO NOTHING RETURNING effect_key", key
    )
    if not inserted:
        rows = await driver.run("SELECT result FROM hapax_effects WHERE effect_key = ?", key)
        stored = rows[0][0]
        return None if stored is None else result.decode(json.loads(stored))
    try:
        value = function(*args, **kwargs)
        if inspect.isawaitable(value):
            value = await value
        text = None if value is None else dump_json(result.encode(value)).decode()
    except BaseException:
        # If the caller commits in spite of it, the key must not stand for something that did not happen. In PostgreSQL
        # the statement is refused after an error of a statement, and so is the commit.
        with contextlib.suppress(Exception):
            await driver.run("DELETE FROM hapax_effects WHERE effect_key = ?", key)
        raise
    if text is not None:
        await driver.run("UPDATE hapax_effects SET result = ? WHERE effect_key = ?", text, key)
    return value


def name_of(function: Callable[..., Any]) -> str:
    """The name of a function, the same in every process."""
    while isinstance(function, functools.partial):
        function = function.func
    name: str = getattr(function, "__qualname__", type(function).__qualname__)
    return name


def _result_type(function: Callable[..., Any]) -> Any:
    try:
        return typing.get_type_hints(function).get("return", Any)
    except (NameError, TypeError):
        return Any
