"""Updates: the code of a workflow answers, once per request key, and every replay answers at the same place."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

import hapax
from hapax import Context, Hapax, SyncContext
from hapax.workflow.run import Run, Turn

EXECUTION = {"id": "r", "workflow_id": "w", "created_at": "2026-01-01T00:00:00.000Z"}
NOW = "2026-01-01T00:00:10.000Z"
KEPT = pytest.mark.parametrize("kept_runs", [1000, 0], ids=["kept", "replayed"])


@dataclass
class Reservation:
    count: int


# Without an engine


def turn_of(function: Any, events: Any = ()) -> Turn:
    run = Run(Hapax("http://127.0.0.1:1").workflow(function), EXECUTION)
    turn = run.turn(list(events), NOW)
    run.drop()
    assert turn is not None
    return turn


def event(no: int, kind: str, step: int | None = None, **members: Any) -> dict[str, Any]:
    return {"no": no, "at": f"2026-01-01T00:00:{no:02}.000Z", "kind": kind, "step": step, **members}


def update(no: int, step: int, name: str, key: str, *payload: Any) -> dict[str, Any]:
    value = {"request_key": key, **({"payload": payload[0]} if payload else {})}
    return event(no, "signal", step, name=f"hapax.update:{name}", value=value)


def wait(no: int, step: int, name: str) -> dict[str, Any]:
    return event(no, "wait_signal", step, name=f"hapax.update:{name}")


def task(no: int, step: int, name: str = "t") -> dict[str, Any]:
    return event(no, "task", step, name=name)


def closed(no: int, step: int, value: Any = None) -> dict[str, Any]:
    return event(no, "closed", step, status="completed", value=value)


def answer_of(turn: Turn, at: int = 0) -> Any:
    command = turn.commands[at]
    assert command["kind"] == "publish", command
    return command["value"]


async def notes_async(ctx: Context) -> str:
    seen = ""

    @ctx.on("note")
    async def note(text: str) -> str:
        nonlocal seen
        seen += text + str(await ctx.run("step", len(seen)))
        return seen

    await ctx.run("t")
    return seen


def notes_plain(ctx: SyncContext) -> str:
    seen = ""

    @ctx.on("note")
    def note(text: str) -> str:
        nonlocal seen
        seen += text + str(ctx.run("step", len(seen)))
        return seen

    ctx.run("t")
    return seen


BOTH = pytest.mark.parametrize("notes", [notes_async, notes_plain], ids=["async", "plain"])


@BOTH
def test_a_handler_is_a_wait_and_its_answer_a_value(notes: Any) -> None:
    asked = turn_of(notes)
    assert asked.commands[0] == {"step": 1, "kind": "wait_signal", "name": "hapax.update:note"}
    assert asked.commands[1]["kind"] == "task"
    assert asked.waits_for is None, "with an open wait beside it, no step runs within the turn"
    events = [wait(1, 1, "note"), task(2, 2), update(3, 1, "note", "k", "a")]
    handling = turn_of(notes, events)
    assert handling.commands == [{"step": 3, "kind": "task", "start": {"type": "step", "input": 0}}]
    answered = turn_of(notes, [*events, task(4, 3, "step"), closed(5, 3, 7)])
    assert answered.commands == [
        {"step": 4, "kind": "publish", "name": "hapax.answer:k", "value": {"result": "a7"}},
        {"step": 5, "kind": "wait_signal", "name": "hapax.update:note"},
    ]


@BOTH
def test_an_update_that_came_after_what_the_code_waits_for_is_handled_after_it(notes: Any) -> None:
    turn = turn_of(notes, [wait(1, 1, "note"), task(2, 2), closed(3, 2), update(4, 1, "note", "k", "a")])
    assert turn.end == {"kind": "completed", "result": ""}, "the code has ended before it"


def test_a_plain_workflow_goes_on_when_its_handler_has_answered() -> None:
    events = [wait(1, 1, "note"), task(2, 2), update(3, 1, "note", "k", "a"), task(4, 3, "step"), closed(5, 2)]
    assert turn_of(notes_plain, events).end["kind"] == "suspended"
    turn = turn_of(notes_plain, [*events, closed(6, 3, 7)])
    assert [command["kind"] for command in turn.commands] == ["publish", "wait_signal"]
    assert turn.end == {"kind": "completed", "result": "a7"}


def test_handlers_of_several_names_answer_in_the_order_of_the_history() -> None:
    async def both(ctx: Context) -> None:
        order: list[str] = []

        @ctx.on("slow")
        async def slow() -> list[str]:
            await ctx.run("t")
            order.append("slow")
            return order

        ctx.on("quick", lambda: [*order, "quick"])
        await ctx.signal("close")

    waits = [wait(1, 1, "slow"), wait(2, 2, "quick"), event(3, "wait_signal", 3, name="close")]
    events = [*waits, update(4, 1, "slow", "k1"), update(5, 2, "quick", "k2")]
    assert [command["kind"] for command in turn_of(both, events).commands] == ["task"]
    turn = turn_of(both, [*events, task(6, 4), closed(7, 4)])
    assert answer_of(turn) == {"result": ["slow"]}
    assert answer_of(turn, 2) == {"result": ["slow", "quick"]}


@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
def test_what_a_handler_raises_refuses_the_update(plain: bool) -> None:
    def declare(ctx: Any) -> None:
        @ctx.on("reserve")
        def reserve(what: Reservation) -> int:
            if what.count > 3:
                raise ValueError("only 3 left")
            if what.count == 2:
                ctx.continue_as_new()
            return 3 - what.count

    async def async_code(ctx: Context) -> None:
        declare(ctx)
        await ctx.signal("close")

    def plain_code(ctx: SyncContext) -> None:
        declare(ctx)
        ctx.signal("close")

    def answer(payload: Any) -> Any:
        waits = [wait(1, 1, "reserve"), event(2, "wait_signal", 2, name="close")]
        return answer_of(turn_of(plain_code if plain else async_code, [*waits, update(3, 1, "reserve", "k", payload)]))

    assert answer({"count": 1}) == {"result": 2}
    assert answer({"count": 9}) == {"error": {"type": "ValueError", "message": "only 3 left"}}
    assert answer({"count": 2})["error"]["message"].startswith("the handler of an update cannot continue as new")
    wrong = answer({"count": "three"})["error"]
    assert wrong["type"] == "InvalidInput"
    assert "/count: expected an integer" in wrong["message"]


def test_an_answer_without_a_json_form_is_refused_and_none_is_nothing() -> None:
    async def code(ctx: Context) -> None:
        ctx.on("bad", lambda: object())
        ctx.on("nothing", lambda: None)
        await ctx.signal("close")

    waits = [wait(1, 1, "bad"), wait(2, 2, "nothing"), event(3, "wait_signal", 3, name="close")]
    turn = turn_of(code, [*waits, update(4, 1, "bad", "k1"), update(5, 2, "nothing", "k2")])
    assert answer_of(turn)["error"]["type"] == "InvalidInput"
    assert answer_of(turn, 2) == {}


@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
def test_a_handler_is_let_end_before_a_requested_cancel_is_told(plain: bool) -> None:
    async def async_code(ctx: Context) -> str:
        async def ask() -> Any:
            return await ctx.run("slow")

        ctx.on("ask", ask)
        try:
            await ctx.signal("close")
        except asyncio.CancelledError:
            return str(ctx.cancel_reason)
        return "never"

    def plain_code(ctx: SyncContext) -> str:
        ctx.on("ask", lambda: ctx.run("slow"))
        try:
            ctx.signal("close")
        except asyncio.CancelledError:
            return str(ctx.cancel_reason)
        return "never"

    code = plain_code if plain else async_code
    waits = [wait(1, 1, "ask"), event(2, "wait_signal", 2, name="close"), update(3, 1, "ask", "k"), task(4, 3, "slow")]
    asked = [*waits, event(5, "cancel_requested", None, value="enough")]
    assert turn_of(code, asked).commands == []
    turn = turn_of(code, [*asked, closed(6, 3, 7)])
    assert answer_of(turn) == {"result": 7}
    assert [command["kind"] for command in turn.commands] == ["publish", "wait_signal", "side_effect"]
    assert turn.end == {"kind": "completed", "result": "enough"}


def test_a_change_of_the_handlers_is_found() -> None:
    async def code(ctx: Context) -> None:
        ctx.on("other", lambda: 1)
        await ctx.signal("close")

    error = turn_of(code, [wait(1, 1, "ask"), event(2, "wait_signal", 2, name="close")]).end["error"]
    assert error["type"] == "NonDeterminism"
    assert "expected wait_signal 'hapax.update:ask', found wait_signal 'hapax.update:other'" in error["message"]


def test_a_handler_keeps_the_rules_too() -> None:
    import time

    async def code(ctx: Context) -> None:
        ctx.on("ask", lambda: time.time())
        await ctx.signal("close")

    def plain(ctx: SyncContext) -> None:
        ctx.on("ask", lambda: time.time())
        ctx.signal("close")

    waits = [wait(1, 1, "ask"), event(2, "wait_signal", 2, name="close")]
    for function in (code, plain):
        end = turn_of(function, [*waits, update(3, 1, "ask", "k")]).end
        assert end["error"]["type"] == "NotInWorkflow"
        assert "test_updates.py" in end["error"]["message"]


def test_several_updates_of_one_plain_workflow_are_answered_before_it_goes_on() -> None:
    def code(ctx: SyncContext) -> list[int]:
        seen: list[int] = []

        @ctx.on("ask")
        def ask(number: int) -> int:
            seen.append(number)
            return sum(ctx.all(add.of(number), add.of(number)))

        ctx.on("other", lambda number: seen.append(number))
        ctx.signal("close")
        return seen

    add = Hapax("http://127.0.0.1:1").task(name="add")(lambda number: number + 1)
    waits = [wait(1, 1, "ask"), wait(2, 2, "other"), event(3, "wait_signal", 3, name="close")]
    asked = [update(4, 1, "ask", "k1", 1), task(5, 4, "add"), task(6, 5, "add")]
    meanwhile = [event(7, "signal", 3, name="close"), update(8, 2, "other", "k2", 2)]
    turn = turn_of(code, [*waits, *asked, *meanwhile, closed(9, 5, 2)])
    assert turn.end["kind"] == "suspended", "a handler waits, and the code with it"
    assert turn.commands == []
    turn = turn_of(code, [*waits, *asked, *meanwhile, closed(9, 5, 2), closed(10, 4, 2)])
    assert [command["kind"] for command in turn.commands] == ["publish", "wait_signal"]
    assert answer_of(turn) == {"result": 4}
    assert turn.end == {"kind": "completed", "result": [1]}, "it ended before the other update, which came after"


def test_a_handler_that_is_dropped_in_the_middle_asks_for_nothing_more() -> None:
    for notes in (notes_async, notes_plain):
        run = Run(Hapax("http://127.0.0.1:1").workflow(notes), EXECUTION)
        turn = run.turn([wait(1, 1, "note"), task(2, 2), update(3, 1, "note", "k", "a")], NOW)
        assert turn is not None
        run.drop()
        assert run.history.take_commands() == []


def declare_wrong(ctx: Any, how: str) -> None:
    async def waits() -> None: ...

    wrong: dict[str, Any] = {
        "twice": lambda: (ctx.on("a", lambda: 1), ctx.on("a", lambda: 2)),
        "arguments": lambda: ctx.on("a", lambda one, two: 1),
        "long": lambda: ctx.on("x" * 201, lambda: 1),
        "blank": lambda: ctx.on(" ", lambda: 1),
        "async": lambda: ctx.on("a", waits),
    }
    wrong[how]()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("twice", "has a handler already"),
        ("arguments", "takes the question, or nothing"),
        ("long", "1 to 200 bytes"),
        ("blank", "1 to 200 bytes"),
        ("async", "a plain function, too"),
    ],
)
def test_a_wrong_handler_fails_the_workflow(how: str, message: str) -> None:
    def plain(ctx: SyncContext) -> None:
        declare_wrong(ctx, how)

    end = turn_of(plain).end
    assert end["error"]["type"] == "InvalidRequest", end
    assert message in end["error"]["message"]


# With an engine


def declare_stock(app: Hapax) -> Any:
    @app.workflow
    async def stock(ctx: Context, left: int) -> int:
        @ctx.on("reserve_more")
        def reserve_more(count: int) -> int:
            nonlocal left
            if count > left:
                raise ValueError(f"only {left} left")
            left -= count
            return left

        @ctx.on("reserve")
        async def reserve(what: Reservation) -> Reservation:
            return Reservation(reserve_more(what.count))

        await ctx.signal("close")
        return left

    return stock


def run(app: Hapax, main: Any, kept_runs: int) -> None:
    async def with_worker() -> None:
        async with app.worker(kept_runs=kept_runs):
            await asyncio.wait_for(main(), 30)

    asyncio.run(with_worker())


@KEPT
@pytest.mark.works
def test_updates_are_answered_once_per_request_key(app: Hapax, kept_runs: int) -> None:
    stock = declare_stock(app)

    async def main() -> None:
        run = await stock.start("stock-1", 10)
        assert await run.update("reserve_more", 3, request_key="more-1") == 7
        assert await run.update("reserve", Reservation(2), Reservation, request_key="more-2") == Reservation(5)
        assert await run.update("reserve_more", 3, request_key="more-1") == 7
        for _ in range(2):
            with pytest.raises(hapax.UpdateRefused, match="only 5 left") as refused:
                await run.update("reserve_more", 6, request_key="more-3")
            assert refused.value.type == "ValueError"
        with pytest.raises(hapax.IdempotencyConflict):
            await run.update("reserve_more", 4, request_key="more-1")
        with pytest.raises(hapax.InvalidInput, match="answer to the update 'reserve_more'"):
            await run.update("reserve_more", 1, Reservation, request_key="more-4")
        await run.signal("close", request_key="close")
        assert await run.result(timeout=20) == 4
        assert await run.update("reserve_more", 3, request_key="more-1") == 7, "also when it is closed"
        assert await run.values() == {}, "answers are no values"
        with pytest.raises(hapax.Error, match="is closed") as late:
            await run.update("reserve_more", 1, request_key="more-5")
        assert late.value.code == "WorkflowClosed"
        with pytest.raises(hapax.NotFound):
            await app.workflow_handle("none").update("reserve_more", 1, request_key="more-6")

    run(app, main, kept_runs)


@KEPT
@pytest.mark.works
def test_an_update_waits_for_its_handler_and_goes_on_with_the_next_run(app: Hapax, kept_runs: int) -> None:
    @app.workflow
    def late(ctx: SyncContext, number: int = 0) -> None:
        ctx.signal("go")
        if number == 0:
            ctx.continue_as_new(1)
        ctx.on("ask", lambda: number)
        ctx.signal("close")

    async def main() -> None:
        run = await late.start("late")
        with pytest.raises(hapax.Timeout, match="same key"):
            await run.update("ask", request_key="k", timeout="50ms")
        asked = asyncio.ensure_future(run.update("ask", request_key="k"))
        await run.signal("go", request_key="go-1")
        await run.signal("go", request_key="go-2")
        assert await asked == 1
        await run.signal("close", request_key="close")
        await run.result(timeout=20)

    run(app, main, kept_runs)


@pytest.mark.works
def test_a_question_of_another_worker_in_another_thread(app: Hapax) -> None:
    stock = declare_stock(app)

    async def main() -> None:
        run = await stock.start("stock-2", 100)
        answers = await asyncio.gather(*(run.update("reserve_more", 1, request_key=f"k-{n}") for n in range(20)))
        assert sorted(answers) == list(range(80, 100))
        asked = await asyncio.to_thread(lambda: hapax.sync(run.update("reserve_more", 1, request_key="k-20")))
        assert asked == 79
        await run.cancel(request_key="cancel")

    run(app, main, 1000)
