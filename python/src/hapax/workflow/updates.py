"""Updates: signals with an answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from hapax.codec.build import ANY
from hapax.durations import Duration, to_seconds, to_wire
from hapax.errors import Timeout
from hapax.handles import key_header

if TYPE_CHECKING:
    from hapax.calls import Calls

_LONGEST_WAIT_S = 30.0


async def send_update(calls: Calls, target: str, payload: Any, key: str, timeout: Duration | None) -> Any:
    """Sends an update and waits for its answer. Sent again under its key, it is the same update."""
    body = {} if payload is None else {"payload": ANY.encode(payload)}
    ends = None if timeout is None else time.monotonic() + to_seconds(timeout)
    while True:
        left = _LONGEST_WAIT_S if ends is None else max(0.0, min(_LONGEST_WAIT_S, ends - time.monotonic()))
        answer = await calls.call(
            "POST", f"{target}?wait={to_wire(round(left, 3))}", body, headers=key_header(key), wait_s=left
        )
        if answer.status != 202:
            return answer.json.get("result")
        if ends is not None and time.monotonic() >= ends:
            raise Timeout(
                f"the workflow has not answered within {timeout}; the update goes on, ask again under its key"
            )
