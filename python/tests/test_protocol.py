"""The vectors of tests/protocol, replayed by async and by plain workflows."""

from __future__ import annotations

import asyncio
import json
import pathlib
from typing import Any

import pytest

from hapax import Context, Hapax, StepFailed, SyncContext
from hapax.workflow.run import Run

VECTORS = sorted((pathlib.Path(__file__).resolve().parents[2] / "tests" / "protocol").rglob("*.json"))


async def run_script(ctx: Context, code: list[dict[str, Any]], got: list[Any]) -> None:
    for each in code:
        op = each["op"]
        if op == "run":
            got.append(await ctx.run(each["type"], each["input"]))
        elif op == "child":
            got.append(await ctx.run_workflow(each["type"], each["input"]))
        elif op == "sleep":
            await ctx.sleep(each["ms"] / 1000)
        elif op == "wait_signal":
            try:
                got.append(await ctx.signal(each["name"], timeout=each["ms"] / 1000 if "ms" in each else None))
            except TimeoutError:
                got.append(None)
        elif op == "side_effect":
            got.append(ctx.side_effect(each["name"], lambda value=each["value"]: value))
        elif op == "version":
            got.append(ctx.version(each["name"], each["current"]))
        elif op == "all":
            got += await asyncio.gather(*(ctx.run(type, 0) for type in each["types"]))
        elif op == "any":
            tasks = [asyncio.ensure_future(ctx.run(type, 0)) for type in each["types"]]
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            got.append(tasks.index(next(iter(done))))
        elif op == "on":
            answer_async(ctx, each, got)
        elif op == "try":
            try:
                await run_script(ctx, each["do"], got)
            except StepFailed:
                if "catch" not in each:
                    raise
                await run_script(ctx, each["catch"], got)
            except asyncio.CancelledError:
                if "cancelled" not in each or not ctx.cancel_requested:
                    raise
                got.append(ctx.cancel_reason)
                await run_script(ctx, each["cancelled"], got)
        elif op == "continue":
            ctx.continue_as_new(each["input"])
        elif op == "fail":
            raise RuntimeError(each["message"])
        else:
            raise AssertionError(f"no such statement: {op}")


def answer_async(ctx: Context, statement: dict[str, Any], got: list[Any]) -> None:
    @ctx.on(statement["name"])
    async def answer(question: int) -> int:
        got.append(question)
        await run_script(ctx, statement["do"], got)
        return question


def answer_plain(ctx: SyncContext, statement: dict[str, Any], got: list[Any]) -> None:
    @ctx.on(statement["name"])
    def answer(question: int) -> int:
        got.append(question)
        run_plain(ctx, statement["do"], got)
        return question


def run_plain(ctx: SyncContext, code: list[dict[str, Any]], got: list[Any]) -> None:
    for each in code:
        op = each["op"]
        if op == "run":
            got.append(ctx.run(each["type"], each["input"]))
        elif op == "child":
            got.append(ctx.run_workflow(each["type"], each["input"]))
        elif op == "sleep":
            ctx.sleep(each["ms"] / 1000)
        elif op == "wait_signal":
            try:
                got.append(ctx.signal(each["name"], timeout=each["ms"] / 1000 if "ms" in each else None))
            except TimeoutError:
                got.append(None)
        elif op == "side_effect":
            got.append(ctx.side_effect(each["name"], lambda value=each["value"]: value))
        elif op == "version":
            got.append(ctx.version(each["name"], each["current"]))
        elif op == "on":
            answer_plain(ctx, each, got)
        elif op == "try":
            try:
                run_plain(ctx, each["do"], got)
            except StepFailed:
                if "catch" not in each:
                    raise
                run_plain(ctx, each["catch"], got)
            except asyncio.CancelledError:
                if "cancelled" not in each or not ctx.cancel_requested:
                    raise
                got.append(ctx.cancel_reason)
                run_plain(ctx, each["cancelled"], got)
        elif op == "continue":
            ctx.continue_as_new(each["input"])
        elif op == "fail":
            raise RuntimeError(each["message"])
        else:
            raise AssertionError(f"no such statement: {op}")


def as_async(code: list[dict[str, Any]]) -> Any:
    async def script(ctx: Context, value: Any = None) -> list[Any]:
        got: list[Any] = []
        await run_script(ctx, code, got)
        return got

    return script


def as_plain(code: list[dict[str, Any]]) -> Any:
    def script(ctx: SyncContext, value: Any = None) -> list[Any]:
        got: list[Any] = []
        run_plain(ctx, code, got)
        return got

    return script


def described(command: dict[str, Any]) -> dict[str, Any]:
    told = {"step": command["step"], "kind": command["kind"]}
    if "start" in command:
        return {**told, "type": command["start"]["type"], "input": command["start"]["input"]}
    told |= {name: command[name] for name in ("name", "until", "value") if name in command}
    if told.get("name", "").startswith("hapax.answer:") and "error" in told["value"]:
        told["value"] = {"error": {"message": told["value"]["error"]["message"]}}
    return told


def described_end(end: dict[str, Any]) -> dict[str, Any]:
    if end["kind"] == "failed":
        kind = end["error"]["type"]
        return {"kind": "failed", **({"type": kind} if kind in ("StepFailed", "CancelRequested") else {})}
    if end["kind"] == "stuck":
        return {"kind": "stuck", "type": end["error"]["type"], "at": end["error"]["message"].split(":")[0]}
    if end["kind"] == "continued":
        return {**end, "input": end["input"]["value"]}  # its arguments by name
    return end


def uses_several(vector: dict[str, Any]) -> bool:
    return any(each["op"] in ("all", "any") for turn in vector["turns"] for each in turn["code"])


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
@pytest.mark.parametrize("make", [as_async, as_plain], ids=["async", "plain"])
def test_a_vector_is_answered_as_written(path: pathlib.Path, make: Any) -> None:
    vector = json.loads(path.read_text())
    if make is as_plain and uses_several(vector):
        make = as_async  # a plain function waits for one thing at a time
    execution = {"id": "019bf2d4-0000-7000-8000-000000000001", "workflow_id": "w", "created_at": vector["now"]}
    assert vector["turns"]
    for turn in vector["turns"]:
        run = Run(Hapax("memory:").workflow(make(turn["code"])), execution)
        made = run.turn(turn["history"], vector["now"])
        run.drop()
        assert made is not None
        found = {
            "seen": made.seen,
            "commands": [described(command) for command in made.commands],
            "end": described_end(made.end),
        }
        assert found == turn["turn"]


def test_there_are_vectors() -> None:
    assert len(VECTORS) >= 32
