"""What a submission is answered with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hapax.errors import Error


@dataclass(frozen=True)
class Receipt:
    """Whether the submission created its execution, which execution it is, and why.

    `execution` and `match` are as the API shows them; `match` says which rule found it, and is None for a task that is
    always unique. `deduplicated_from` is the execution that was found. `result_expired` says that it was completed, but
    its result is no longer kept.
    """

    created: bool
    execution: Mapping[str, Any]
    deduplicated_from: str | None
    match: Mapping[str, Any] | None
    result_expired: bool

    @classmethod
    def from_wire(cls, body: Mapping[str, Any]) -> Receipt:
        """From the API's answer."""
        return cls(
            created=body["created"],
            execution=body["execution"],
            deduplicated_from=body.get("deduplicated_from"),
            match=body.get("match"),
            result_expired=body.get("result_expired", False),
        )

    @property
    def id(self) -> str:
        """The id of the execution."""
        execution_id: str = self.execution["id"]
        return execution_id

    @property
    def has_result(self) -> bool:
        """Whether the execution was completed already, and its result came with the receipt."""
        omitted = self.execution.get("result_omitted", False)
        return not self.created and self.status == "completed" and not self.result_expired and not omitted

    @property
    def status(self) -> str:
        """The status of the execution when the submission was answered."""
        status: str = self.execution["status"]
        return status


@dataclass(frozen=True)
class Explanation:
    """What a submission would be answered with. `print` it for a sentence."""

    receipt: Receipt | None
    error: Error | None

    def __str__(self) -> str:
        if self.error is not None:
            return f"It would be refused: {self.error}"
        assert self.receipt is not None
        execution, match = self.receipt.execution, self.receipt.match
        why = "every submission is a task of its own"
        if match:
            why = f"its identity is {match['strategy']}, within the {match['scope']}"
        if self.receipt.created:
            old = match and match.get("superseded")
            took = f", in place of the closed {old}" if old else ""
            return f"It would create a new {execution['kind']} of type {execution['type']}{took}: {why}."
        return f"It would find the {execution['status']} {execution['kind']} {execution['id']}: {why}."
