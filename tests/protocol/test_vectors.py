"""Every vector, replayed by the worker of tests/e2e/workflow_worker.py."""

import datetime
import json
import pathlib

import pytest

from workflow_worker import TIMED_OUT, Any, CancelRequested, ContinueAsNew, StepFailed, make_turn

VECTORS = sorted(pathlib.Path(__file__).resolve().parent.rglob("*.json"))


def later(now, ms):
    time = datetime.datetime.fromisoformat(now.replace("Z", "+00:00")) + datetime.timedelta(milliseconds=ms)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def statements(ctx, code, now, got):
    """Runs the statements of a script; `got` takes what the code gets from each."""
    for each in code:
        op = each["op"]
        if op == "run":
            got.append((yield ctx.task(each["type"], each["input"])))
        elif op == "child":
            got.append((yield ctx.child(each["type"], each["input"])))
        elif op == "sleep":
            yield ctx.sleep(later(now, each["ms"]))
        elif op == "wait_signal":
            value = yield ctx.wait_signal(each["name"], later(now, each["ms"]) if "ms" in each else None)
            got.append(None if value is TIMED_OUT else value)
        elif op == "side_effect":
            got.append(ctx.side_effect(each["name"], lambda value=each["value"]: value))
        elif op == "version":
            got.append(ctx.version(each["name"], each["current"]))
        elif op == "all":
            got += yield [ctx.task(type, 0) for type in each["types"]]
        elif op == "any":
            index, _ = yield Any(*[ctx.task(type, 0) for type in each["types"]])
            got.append(index)
        elif op == "on":
            ctx.on(each["name"], handler(ctx, each["do"], now, got))
        elif op == "try":
            try:
                yield from statements(ctx, each["do"], now, got)
            except StepFailed:
                if "catch" not in each:
                    raise
                yield from statements(ctx, each["catch"], now, got)
            except CancelRequested as cancel:
                if "cancelled" not in each:
                    raise
                got.append(cancel.reason)
                yield from statements(ctx, each["cancelled"], now, got)
        elif op == "continue":
            raise ContinueAsNew(each["input"])
        elif op == "fail":
            raise RuntimeError(each["message"])
        else:
            raise AssertionError(f"no such statement: {op}")


def handler(ctx, code, now, got):
    def answer(question):
        got.append(question)
        yield from statements(ctx, code, now, got)
        return question

    return answer


def workflow(code, now):
    def run(ctx, _input):
        got = []
        yield from statements(ctx, code, now, got)
        return got

    return run


def describe_command(command):
    start = command.get("start")
    told = {"step": command["step"], "kind": command["kind"]}
    if start:
        return {**told, "type": start["type"], "input": start["input"]}
    told |= {name: command[name] for name in ("name", "until", "value") if name in command}
    if told.get("name", "").startswith("hapax.answer:") and "error" in told["value"]:
        told["value"] = {"error": {"message": told["value"]["error"]["message"]}}
    return told


def describe_end(end):
    if end["kind"] == "failed":
        type = end["error"]["type"]
        return {"kind": "failed", **({"type": type} if type in ("StepFailed", "CancelRequested") else {})}
    if end["kind"] == "stuck":
        return {"kind": "stuck", "type": end["error"]["type"], "at": end["error"]["message"].split(":")[0]}
    return end


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_a_vector_is_answered_as_written(path):
    vector = json.loads(path.read_text())
    assert vector["turns"]
    for turn in vector["turns"]:
        commands, end = make_turn(workflow(turn["code"], vector["now"]), {"input": None}, turn["history"])
        seen = max((event["no"] for event in turn["history"]), default=0)
        found = {"seen": seen, "commands": [describe_command(command) for command in commands], "end": describe_end(end)}
        assert found == turn["turn"]


def test_there_are_vectors():
    assert len(VECTORS) >= 32
