"""Writes docs/python-api.md from the docstrings: `python reference.py`, or with `--check` says whether it is current.

Every public name is in it. One without a docstring is an error.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pathlib
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "python-api.md"
WIDTH = 110

HEAD = """\
# The Python API

Made from the docstrings by `python/reference.py`. [python.md](python.md) is the guide. A `Duration` is `"500ms"`,
`"30s"`, `"5m"`, `"12h"` or `"7d"`, a `timedelta`, or seconds.
"""

# What is where. Every name of `hapax.__all__` is in one of the first sections.
SECTIONS: list[tuple[str, str, list[str]]] = [
    ("The app", "hapax", ["Hapax", "sync", "new_id", "__version__"]),
    ("Tasks and workflows", "hapax", ["Task", "Workflow", "Call", "Retry", "SubmitOptions"]),
    ("Handles", "hapax", ["Handle", "WorkflowHandle", "Receipt", "Explanation"]),
    ("In a task", "hapax", ["TaskContext", "current", "FinalError", "RetryLater", "Snooze"]),
    ("In a workflow", "hapax", ["Context", "SyncContext", "StepFailed"]),
    ("Schedules and events", "hapax", ["Window", "CloudEvent"]),
    (
        "How a task or workflow ended",
        "hapax",
        [
            "ExecutionError",
            "TaskFailed",
            "TaskCancelled",
            "TaskTimedOut",
            "WorkflowFailed",
            "WorkflowCancelled",
            "WorkflowTimedOut",
        ],
    ),
    (
        "Errors of calls",
        "hapax",
        [
            "Error",
            "InvalidRequest",
            "InvalidInput",
            "UnsupportedAnnotation",
            "NotFound",
            "Unauthorized",
            "IdempotencyConflict",
            "TaskAlreadyExists",
            "TaskAlreadyCompleted",
            "WorkflowAlreadyExists",
            "WorkflowAlreadyCompleted",
            "RequestInProgress",
            "RequestFailedBefore",
            "UpdateRefused",
            "LeaseLost",
            "StoreUnavailable",
            "Timeout",
            "ForkError",
            "OldServer",
            "NativeMissing",
            "BatchError",
        ],
    ),
    ("Workers", "hapax.worker", ["Worker"]),
    ("Tests", "hapax.testing", ["TestHapax", "Server", "replay"]),
    ("Idempotency-Key middleware", "hapax.asgi", ["IdempotencyMiddleware"]),
    ("", "hapax.django", ["IdempotencyMiddleware"]),
    ("", "hapax.flask", ["IdempotencyMiddleware"]),
    ("OpenTelemetry", "hapax.otel", ["instrument", "uninstrument"]),
    ("The relay, by hand", "hapax.sql.outbox", ["Relay"]),
]


# Called by other parts of the library, not by programs.
HIDDEN = {
    "Worker": {"failed", "cancelled", "started", "kill_processes"},
    "Receipt": {"from_wire"},
    "Retry": {"to_wire"},
    "SubmitOptions": {"to_wire", "merged"},
    "Task": {"request"},
    "Workflow": {"request"},
}
# Programs make these themselves.
CONSTRUCTED = {
    "FinalError",
    "Hapax",
    "IdempotencyMiddleware",
    "Relay",
    "RetryLater",
    "Server",
    "Snooze",
    "TestHapax",
    "Worker",
}


class Undocumented(Exception):
    """A public name has no docstring."""


def text_of(owner: str, thing: Any) -> str:
    """The docstring, as Markdown."""
    text = getattr(thing, "__doc__", None)
    if not text or not text.strip():
        raise Undocumented(f"{owner} has no docstring")
    return inspect.cleandoc(text)


def short(annotation: str) -> str:
    """An annotation as a reader wants it."""
    for module in ("typing.", "hapax."):
        annotation = annotation.replace(module, "")
    return annotation.strip("'\"")


def parameter_of(parameter: inspect.Parameter) -> str:
    star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    text = star + parameter.name
    if parameter.annotation is not parameter.empty:
        text += f": {short(inspect.formatannotation(parameter.annotation))}"
    if parameter.default is not parameter.empty:
        text += f" = {parameter.default!r}"
    return text


def parameters_of(function: Any, *, bound: bool) -> list[str]:
    """The parameters as they are written, with the marks of those that are positional or named only."""
    shown: list[str] = []
    before: inspect.Parameter | None = None
    for number, parameter in enumerate(inspect.signature(function).parameters.values()):
        if bound and number == 0:
            continue
        positional = before is not None and before.kind is before.POSITIONAL_ONLY
        if positional and parameter.kind is not parameter.POSITIONAL_ONLY:
            shown.append("/")
        has_star = before is not None and before.kind in (before.KEYWORD_ONLY, before.VAR_POSITIONAL)
        if parameter.kind is parameter.KEYWORD_ONLY and not has_star:
            shown.append("*")
        shown.append(parameter_of(parameter))
        before = parameter
    if before is not None and before.kind is before.POSITIONAL_ONLY:
        shown.append("/")
    return shown


def signature_of(name: str, function: Any, *, bound: bool) -> str:
    """A call as Python writes it, on several lines if it is long."""
    before = "async " if inspect.iscoroutinefunction(function) else ""
    parameters = parameters_of(function, bound=bound)
    returned = inspect.signature(function).return_annotation
    after = ""
    if returned is not inspect.Signature.empty and not name[0].isupper():
        after = f" -> {short(inspect.formatannotation(returned))}"
    line = f"{before}{name}({', '.join(parameters)}){after}"
    if len(line) <= WIDTH:
        return line
    lines = ["   "]
    for parameter in parameters:
        if len(lines[-1]) + len(parameter) + 2 > WIDTH:
            lines.append("   ")
        lines[-1] += f" {parameter},"
    return "\n".join([f"{before}{name}(", *lines, f"){after}"])


def members_of(cls: type) -> Iterator[tuple[str, Any]]:
    """The public members, in the order of the source; those of a base class that is not public count as its own."""
    seen: set[str] = set()
    bases = [base for base in cls.__mro__ if base is cls or base.__name__.startswith("_") or base in cls.__bases__]
    own = [base for base in bases if base is cls or base.__name__ not in importlib.import_module("hapax").__all__]
    for base in reversed(own):
        for name, member in vars(base).items():
            if name.startswith("_") or name in seen or name in HIDDEN.get(cls.__name__, ()):
                continue
            if isinstance(member, (property, classmethod, staticmethod)) or inspect.isfunction(member):
                seen.add(name)
                yield name, vars(cls).get(name, member)


def fields_of(cls: type) -> Iterator[str]:
    if dataclasses.is_dataclass(cls):
        for field in dataclasses.fields(cls):
            yield f"`{field.name}: {short(str(field.type))}`"


def describe_class(shown: str, cls: type) -> Iterator[str]:
    base = cls.__mro__[1].__name__
    of = f" ({base})" if base in importlib.import_module("hapax").__all__ else ""
    yield f"### {shown}{of}\n"
    yield text_of(shown, cls) + "\n"
    fields = list(fields_of(cls))
    if fields:
        yield textwrap.fill("Members: " + ", ".join(fields) + ".", 118, break_long_words=False) + "\n"
    elif cls.__name__ in CONSTRUCTED:
        yield f"```py\n{signature_of(cls.__name__, vars(cls)['__init__'], bound=True)}\n```\n"
    for name, member in members_of(cls):
        owner = f"{shown}.{name}"
        if isinstance(member, property):
            returned = inspect.signature(member.fget).return_annotation if member.fget else Any
            text = f"**`{name}: {short(inspect.formatannotation(returned))}`** {text_of(owner, member.fget)}"
            yield textwrap.fill(text, 118, break_long_words=False, break_on_hyphens=False) + "\n"
        else:
            function = getattr(member, "__func__", member)
            yield f"```py\n{signature_of(name, function, bound=not isinstance(member, staticmethod))}\n```\n"
            yield text_of(owner, function) + "\n"


def page() -> str:
    parts = [HEAD]
    for title, module_name, names in SECTIONS:
        module = importlib.import_module(module_name)
        if title:
            parts.append(f"## {title}\n")
        for name in names:
            thing = getattr(module, name)
            shown = name if module_name == "hapax" else f"{module_name}.{name}"
            if inspect.isclass(thing):
                parts += describe_class(shown, thing)
            elif inspect.isfunction(thing):
                parts.append(f"### {shown}\n")
                parts.append(f"```py\n{signature_of(name, thing, bound=False)}\n```\n")
                parts.append(text_of(shown, thing) + "\n")
            else:
                parts.append(f"### {shown}\n\nThe version of this package.\n")
    return "\n".join(parts).rstrip() + "\n"


def main() -> int:
    missing = set(importlib.import_module("hapax").__all__) - {name for _, _, names in SECTIONS for name in names}
    try:
        text = page()
    except Undocumented as error:
        print(f"reference.py: {error}", file=sys.stderr)
        return 1
    if missing:
        print(f"reference.py: in no section: {', '.join(sorted(missing))}", file=sys.stderr)
        return 1
    if "--check" in sys.argv[1:]:
        if PAGE.exists() and PAGE.read_text() == text:
            return 0
        print(
            f"reference.py: {PAGE.relative_to(ROOT)} is not current; run `python python/reference.py`", file=sys.stderr
        )
        return 1
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
