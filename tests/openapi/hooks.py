"""What Schemathesis cannot read from openapi.json: our own formats, and rules between members that JSON Schema cannot
express, or not in a way that client generators understand. Loaded by SCHEMATHESIS_HOOKS."""

import secrets
import time
import uuid

import schemathesis
from hypothesis import strategies as st

# Lengths count bytes of UTF-8, where JSON Schema counts characters; controls are U+0000 to U+001F and U+007F to U+009F.
CHARACTERS = st.characters(exclude_categories=("Cc", "Cs"))
NAMES = st.text(CHARACTERS, min_size=1, max_size=32)
VISIBLE = st.text(st.characters(exclude_categories=("Cc", "Cs", "Z")), min_size=1, max_size=20)

schemathesis.openapi.format("hapax-name", NAMES)
schemathesis.openapi.format("hapax-key", st.builds(lambda a, b: a + b, VISIBLE, st.text(CHARACTERS, max_size=20)))
schemathesis.openapi.format("hapax-activity-id", NAMES.map(lambda name: name.replace(":", "-")))
schemathesis.openapi.format("hapax-event-id", VISIBLE)
schemathesis.openapi.format("hapax-signal-target", st.sampled_from(["order-{/data/order_id}", "{/subject}", "w"]))
schemathesis.openapi.format("hapax-deadline", st.sampled_from(["1h", "90s", "2099-01-27T12:00:00Z", "7d12h"]))
schemathesis.openapi.format("hapax-cron", st.sampled_from(["0 9 * * 1-5", "*/15 * * * *", "30 0 4 1 1 *", "@daily"]))
schemathesis.openapi.format("hapax-time-zone", st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]))


def draw_id():
    """A UUIDv7."""
    number = time.time_ns() // 1_000_000 << 80 | 7 << 76 | secrets.randbits(12) << 64 | 0b10 << 62 | secrets.randbits(62)
    return str(uuid.UUID(int=number))


def present(document, *names):
    return all(document.get(name) is not None for name in names)


def ends_after_it_begins(retry):
    # "max" is not shorter than "initial": one member's range depends on the other's value.
    return not isinstance(retry, dict) or not present(retry, "initial", "max")


def allowed_submission(body):
    if not isinstance(body, dict):
        return True
    # Only one of the two says when it starts. `not` could express that, but client generators fail on it.
    if present(body, "run_at", "delay"):
        return False
    # A strategy of identity needs its own members: fields for contextual, a key for caller_provided.
    if body.get("identity") is not None or body.get("identity_fields") is not None:
        return False
    return ends_after_it_begins(body.get("retry"))


def allowed_settings(body):
    if not isinstance(body, dict):
        return True
    # A burst goes with a rate, which refills it within a year; fields go with the identity contextual only.
    if present(body, "burst") or present(body, "identity_fields") or body.get("identity") == "contextual":
        return False
    return ends_after_it_begins(body.get("retry"))


def allowed_activity(body):
    if not isinstance(body, dict):
        return True
    # Exactly one of workflow, tasks and signal; a signal has an event. The strategy repeats what the trigger says.
    said = [name for name in ("workflow", "tasks", "signal") if present(body, name)]
    has_event = "event" in (body.get("trigger") or {})
    return len(said) == 1 and (said != ["signal"] or has_event) and body.get("dedupe_key_strategy") is None


def allowed_turns(body):
    for turn in body.get("turns", []) if isinstance(body, dict) else []:
        # Steps count on from one command to the next.
        commands = turn.get("commands") or []
        steps = [command.get("step") for command in commands]
        if any(after != before + 1 for before, after in zip(steps, steps[1:])):
            return False
        starts = [command.get("start") for command in commands]
        if not all(allowed_submission(start) for start in starts):
            return False
        # The server gives a step its id.
        if any(isinstance(start, dict) and present(start, "id") for start in starts):
            return False
    return True


def allowed_event(body):
    for event in body if isinstance(body, list) else [body]:
        # An event has its data in one form.
        if present(event, "data_base64") and "data" in event:
            return False
        # An integer of JSON Schema may be written as 1.0; one of CloudEvents may not.
        if any(isinstance(value, float) for name, value in event.items() if name != "data"):
            return False
    return True


def allowed_key(case, member):
    # The header Idempotency-Key stands for the member: one of them, or both with the same text.
    return "Idempotency-Key" not in (case.headers or {}) or not present(case.body, member)


def allowed_start(case):
    # The id is a member or the header.
    named = present(case.body, "workflow_id") or "Idempotency-Key" in (case.headers or {})
    return named and allowed_key(case, "workflow_id") and allowed_submission(case.body)


def allowed_lookup(case):
    # An identity under the scope `type`, which is that of a type that says nothing else, has a type.
    return "type" in (case.query or {})


DECLARING = ("putType", "patchType", "declareTypeInCode")

RULES = {
    "submitTask": lambda case: allowed_key(case, "idempotency_key") and allowed_submission(case.body),
    "startWorkflow": allowed_start,
    "putQueue": lambda case: allowed_settings(case.body),
    "putType": lambda case: allowed_settings(case.body),
    "patchType": lambda case: allowed_settings(case.body),
    "declareTypeInCode": lambda case: allowed_settings(case.body),
    "putActivity": lambda case: allowed_activity(case.body),
    "commitTurns": lambda case: allowed_turns(case.body),
    # The steps that a workflow has are its own.
    "forkWorkflow": lambda case: (case.body or {}).get("from_step") in (None, 0, 1),
    "deliverEvents": lambda case: allowed_event(case.body),
    "findIdentity": allowed_lookup,
    # A cursor is the next_cursor of an earlier answer, and opaque.
    "listRuns": lambda case: "cursor" not in (case.query or {}),
    # The window lies in the past and has firings; the activity has a schedule. No generated one meets all of this.
    "backfillActivity": lambda case: False,
}


def is_positive(case):
    return case.meta is None or case.meta.generation.mode.is_positive


@schemathesis.hook
def filter_case(context, case):
    rule = RULES.get(case.operation.definition.raw.get("operationId"))
    if rule is None or not is_positive(case):
        return True
    try:
        return rule(case)
    except (AttributeError, TypeError):
        return True  # no body of the form that the rule is about


@schemathesis.hook
def before_call(context, case, kwargs):
    # A declared type may require members in its submissions: declare no type that is submitted.
    if case.operation.definition.raw.get("operationId") in DECLARING and is_positive(case):
        case.path_parameters["name"] = "declared"
    # An id names one submission: one that is taken is refused with another input, or in another namespace.
    if is_positive(case) and isinstance(case.body, dict) and present(case.body, "id"):
        case.body["id"] = draw_id()
    # A short long poll answers the same as a long one and saves the time.
    for holder in (case.query, case.body):
        if isinstance(holder, dict) and isinstance(holder.get("wait"), str) and is_positive(case):
            holder["wait"] = "10ms"
