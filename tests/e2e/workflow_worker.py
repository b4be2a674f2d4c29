"""A worker for workflows, written from docs/protocol.md alone: it replays every run from its history at every turn.

A workflow is a generator function. It asks its Context for things, and yields what it waits for:

    def process_order(ctx, order):
        payment = yield ctx.task("charge", order, idempotency_key=f"payment-{order}")
        parcels = yield [ctx.task("ship", line) for line in order["lines"]]   # all of them
        first, value = yield Any(ctx.sleep(until), ctx.wait_signal("stop"))   # whichever comes first
        return payment
"""

import inspect
import math
import os
import socket
import time
from urllib.parse import quote

from slowdown import SLOWDOWN


class StepFailed(Exception):
    def __init__(self, status, error):
        super().__init__(f"{status}: {(error or {}).get('message')}")
        self.status = status
        self.error = error


class ContinueAsNew(Exception):
    def __init__(self, input):
        super().__init__("continue as new")
        self.input = input


class NonDeterminism(Exception):
    pass


class Suspended(BaseException):
    """The code waits for something that is not in the history yet."""


class CancelRequested(Exception):
    def __init__(self, reason):
        super().__init__("its cancellation was requested")
        self.reason = reason


class Any:
    def __init__(self, *steps):
        self.steps = steps


COMMANDS = ("task", "sleep", "wait_signal", "child", "side_effect", "version", "cancel_step", "publish", "send_signal")
OUTCOMES = ("closed", "fired", "signal")
TIMED_OUT = object()  # the result of a wait for a signal that timed out
TOLD = "hapax.cancel_requested"  # the side effect that records where the code was told of a requested cancel


class Context:
    """What the code of a workflow may ask for. Steps are numbered in the order of the calls."""

    def __init__(self, execution, events):
        self.execution = execution
        self.recorded = {e["step"]: e for e in events if e["kind"] in COMMANDS}
        self.outcomes = {}
        for event in events:
            if event["kind"] in OUTCOMES and event.get("step"):
                self.outcomes.setdefault(event["step"], event)
        self.seen = max((event["no"] for event in events), default=0)
        self.requested = next((event for event in events if event["kind"] == "cancel_requested"), None)
        self.told = False
        self.next_step = 1
        self.commands = []  # new ones
        self.kinds = {}  # of what the code asked for
        self.handlers = {}  # of updates: by name, the function and the step that waits for the next one
        self.in_handler = False

    def task(self, type, input=None, **options):
        self.tell_of_cancel()
        return self._ask("task", type, {"start": {"type": type, "input": input, **options}})

    def child(self, type, input=None, workflow_id=None, **options):
        start = {"type": type, "input": input, **options}
        if workflow_id:
            start["workflow_id"] = workflow_id
        self.tell_of_cancel()
        return self._ask("child", type, {"start": start}, key=workflow_id)

    def sleep(self, until):
        self.tell_of_cancel()
        return self._ask("sleep", None, {"until": until})

    def wait_signal(self, name, until=None):
        self.tell_of_cancel()
        return self._wait_signal(name, until)

    def _wait_signal(self, name, until=None):
        return self._ask("wait_signal", name, {"name": name, **({"until": until} if until else {})})

    def publish(self, name, value):
        return self._ask("publish", name, {"name": name, "value": value})

    def on(self, name, function):
        """Answers updates of that name with what the function returns; what it raises refuses them. The function may
        be a generator, which waits as a workflow does."""
        self.handlers[name] = (function, self._wait_signal("hapax.update:" + name))

    def answer_update(self, before):
        """Handles the earliest update with a smaller number; False if there is none."""
        if self.in_handler:
            return False
        there = [(self.outcomes[step]["no"], name) for name, (_, step) in self.handlers.items() if step in self.outcomes]
        no, name = min(there, default=(before, None))
        if no >= before:
            return False
        function, step = self.handlers[name]
        update = self.outcomes[step]["value"]
        self.in_handler = True
        try:
            result = function(update.get("payload"))
            if inspect.isgenerator(result):
                result = drive(result, self)
            answer = {} if result is None else {"result": result}
        except NonDeterminism:
            raise
        except Exception as error:
            answer = {"error": {"type": type(error).__name__, "message": str(error)}}
        self.in_handler = False
        self.publish("hapax.answer:" + update["request_key"], answer)
        self.on(name, function)
        return True

    def known_when_told(self):
        """If the code was told of a cancel before it asked for anything else: the latest event that it knew then."""
        before = self.recorded.get(self.next_step)
        told = before and (before["kind"], before.get("name")) == ("side_effect", TOLD)
        return before["value"]["known"] if told else None

    def tell_of_cancel(self):
        """Raises CancelRequested where the code is told of it, and records the place."""
        before = self.recorded.get(self.next_step)
        if self.told or (self.known_when_told() is None if before else self.requested is None):
            return
        self.told = True
        reason = {} if before or self.requested.get("value") is None else {"reason": self.requested["value"]}
        raise CancelRequested(self.side_effect(TOLD, lambda: {"known": self.seen, **reason}).get("reason"))

    def may_be_interrupted(self, wait):
        """A task that was begun has its effect: the code gets its outcome first."""
        steps = wait.steps if isinstance(wait, Any) else wait if isinstance(wait, (list, tuple)) else [wait]
        return any(self.kinds[step] not in ("task", "send_signal") for step in steps)

    def side_effect(self, name, compute):
        step = self.next_step
        if step in self.recorded:
            self._ask("side_effect", name, {})
            return self.recorded[step].get("value")
        value = compute()
        self._ask("side_effect", name, {"name": name, "value": value})
        return value

    def version(self, name, current):
        known = self.recorded.get(self.next_step)
        if known and (known["kind"], known.get("name")) != ("version", name):
            return 0  # the code passed this point before it used versions: no command
        if known:
            self._ask("version", name, {})
            return known["value"]
        self._ask("version", name, {"name": name, "value": current})
        return current

    def _ask(self, kind, name, body, key=None):
        step = self.next_step
        self.next_step += 1
        self.kinds[step] = kind
        known = self.recorded.get(step)
        if known is None:
            self.commands.append({"step": step, "kind": kind, **body})
        elif (known["kind"], known.get("name")) != (kind, name) or (key and known.get("key") != key):
            raise NonDeterminism(f"step {step}: expected {known['kind']} {known.get('name')}, found {kind} {name}")
        return step

    def left_over(self):
        """The first recorded step that the code did not ask for."""
        return min((step for step in self.recorded if step >= self.next_step), default=None)


def value_of(event):
    if event["kind"] == "closed" and event["status"] != "completed":
        raise StepFailed(event["status"], event.get("error"))
    return event.get("value")


def answer_to(wait, context):
    """(True, what the code gets) or (False, None): it has to wait. Raises StepFailed."""
    outcomes = context.outcomes
    if isinstance(wait, Any):
        there = [outcomes[step] for step in wait.steps if step in outcomes]
        if not there:
            return False, None
        first = min(there, key=lambda event: event["no"])
        return True, (wait.steps.index(first["step"]), value_of(first))
    if isinstance(wait, (list, tuple)):
        if any(step not in outcomes for step in wait):
            return False, None
        return True, [value_of(outcomes[step]) for step in wait]
    if wait not in outcomes:
        return False, None
    event = outcomes[wait]
    if event["kind"] == "fired" and context.recorded.get(wait, {}).get("kind") == "wait_signal":
        return True, TIMED_OUT
    return True, value_of(event)


def number_of(wait, context):
    """The number of the event that makes it ready; infinite if it is not there yet."""
    steps = wait.steps if isinstance(wait, Any) else wait if isinstance(wait, (list, tuple)) else [wait]
    numbers = [context.outcomes[step]["no"] if step in context.outcomes else math.inf for step in steps]
    return min(numbers) if isinstance(wait, Any) else max(numbers, default=0)


def drive(code, context):
    """Runs a generator to its end; what it returned. Raises Suspended where it has to wait."""
    send, value = code.send, None
    while True:
        try:
            wait = send(value)
        except StopIteration as returned:
            return returned.value
        try:
            interrupts, known = context.may_be_interrupted(wait), context.known_when_told()
            if interrupts and known is not None and number_of(wait, context) > known:
                context.tell_of_cancel()
            while context.answer_update(number_of(wait, context)):
                pass
            ready, value = answer_to(wait, context)
            if not ready and interrupts:
                context.tell_of_cancel()
        except (StepFailed, CancelRequested) as thrown:
            send, value = code.throw, thrown
            continue
        if not ready:
            raise Suspended
        send = code.send


def run_code(function, context):
    """Runs the code from its start to where it waits or ends; returns how the turn ends."""
    try:
        result = drive(function(context, context.execution["input"]), context)
        return {"kind": "completed", **({} if result is None else {"result": result})}
    except Suspended:
        return {"kind": "suspended"}
    except ContinueAsNew as again:
        return {"kind": "continued", "input": again.input}
    except NonDeterminism as error:
        return {"kind": "stuck", "error": {"type": "NonDeterminism", "message": str(error)}}
    except Exception as error:
        return {"kind": "failed", "error": {"type": type(error).__name__, "message": str(error)}}


def make_turn(function, execution, events):
    context = Context(execution, events)
    end = run_code(function, context)
    left = context.left_over()
    if left is not None and end["kind"] != "stuck":
        expected = context.recorded[left]
        message = f"step {left}: expected {expected['kind']} {expected.get('name')}, found {end['kind']}"
        end = {"kind": "stuck", "error": {"type": "NonDeterminism", "message": message}}
    return [] if end["kind"] == "stuck" else context.commands, end


class WorkflowWorker:
    """`workflows` and `tasks` are functions by type; a task gets (input, execution) and gives its result or raises."""

    def __init__(self, http, workflows, tasks=None, queues=("default",), name="python"):
        self.http = http
        self.workflows = workflows
        self.tasks = tasks or {}
        self.queues = list(queues)
        self.name = name
        self.turns = []  # what was committed, for tests
        self.takes_all = False  # claims any type, not only those that it knows

    def claim(self, kinds=("task", "workflow"), wait="0", limit=1, lease="60s"):
        body = {
            "worker": self.name, "queues": self.queues, "kinds": list(kinds), "wait": wait, "limit": limit, "lease": lease,
            "sdk": {"name": "workflow_worker.py", "version": "1"}, "host": socket.gethostname(), "pid": os.getpid(),
        }
        known = [*(self.tasks if "task" in kinds else ()), *(self.workflows if "workflow" in kinds else ())]
        if known and not self.takes_all:
            body["types"] = sorted(set(known))
        answer = self.http.post("/v1/claims", body)
        assert answer.status == 200, answer
        return answer.json["claims"]

    def history(self, execution):
        events, after = [], 0
        while after is not None:
            workflow_id = quote(execution["workflow_id"], safe="")
            answer = self.http.get(f"/v1/workflows/{workflow_id}/history?run={execution['id']}&after={after}")
            assert answer.status == 200, answer
            events += answer.json["events"]
            after = answer.json["next_after"]
        return events

    def run_turn(self, claim):
        execution = claim["execution"]
        # The claim has what came after run.seen; from the very start that is everything.
        events = claim["events"] if claim["run"]["seen"] == 0 else self.history(execution)
        function = self.workflows.get(execution["type"])
        if function:
            commands, end = make_turn(function, execution, events)
        else:
            message = f"no workflow of type {execution['type']} is known here"
            commands, end = [], {"kind": "stuck", "error": {"type": "UnknownType", "message": message}}
        seen = max((event["no"] for event in events), default=0)
        return self.commit({"lease": claim["lease"], "seen": seen, "commands": commands, "end": end})

    def commit(self, turn):
        answer = self.http.post("/v1/claims/turns", {"turns": [turn]})
        assert answer.status in (200, 409), answer
        self.turns.append(turn)
        return answer.json["turns"][0]

    def run_task(self, claim):
        execution = claim["execution"]
        try:
            result = self.tasks[execution["type"]](execution["input"], execution)
            outcome = {"lease": claim["lease"], **({} if result is None else {"result": result})}
        except Exception as error:
            retryable = not getattr(error, "final", False)
            told = {"type": type(error).__name__, "message": str(error), "retryable": retryable}
            outcome = {"lease": claim["lease"], "error": told}
        answer = self.http.post("/v1/claims/finish", {"outcomes": [outcome]})
        assert answer.status in (200, 409), answer

    def work(self, kinds=("task", "workflow"), wait="0", lease="60s"):
        """Handles one claim; False if there was none."""
        claims = self.claim(kinds, wait, lease=lease)
        for claim in claims:
            (self.run_turn if claim["execution"]["kind"] == "workflow" else self.run_task)(claim)
        return bool(claims)

    def until_closed(self, workflow_id, deadline_s=30):
        """Works until the workflow is closed; its result."""
        end = time.monotonic() + deadline_s * SLOWDOWN
        while True:
            answer = self.http.get(f"/v1/workflows/{quote(workflow_id, safe='')}/result")
            assert answer.status in (200, 202), answer
            if answer.status == 200:
                return answer.json
            assert time.monotonic() < end, answer
            self.work(wait="500ms")

    def until_idle(self):
        """Works until nothing is claimable."""
        while self.work():
            pass
