"""Workflows on the command line, on a server and directly on its store."""

import pytest

from caller import Caller
from command import NOT_FOUND, REFUSED, TASK_FAILED, USAGE, Command
from workflow_worker import WorkflowWorker


def order(ctx, input):
    payment = yield ctx.task("charge", input)
    approval = yield ctx.wait_signal("approve")
    return [payment, approval]


@pytest.fixture(params=["url", "store"])
def command(request, shared_server, tmp_path):
    where = {"url": ["--url", f"http://127.0.0.1:{shared_server.port}"], "store": ["--store", shared_server.store]}
    return Command(tmp_path, where[request.param])


@pytest.fixture
def worker(caller):
    return WorkflowWorker(caller.http, {"order": order}, {"charge": lambda *_: "ch_1"})


def test_a_workflow_from_start_to_result(command, worker, fresh):
    workflow_id = fresh("order ü/")
    assert command.ok("start", "order", workflow_id, "456").out.startswith(f"started {workflow_id} (")
    assert command.ok("start", "order", workflow_id, "456").out.startswith("already there since")
    worker.until_idle()

    assert f"workflow  {workflow_id}\n" in command.ok("get", workflow_id).out
    command.ok("signal", workflow_id, "approve", '{"by": "ada"}')
    worker.until_closed(workflow_id)
    timeline = command.ok("history", workflow_id).out.splitlines()

    assert timeline[0].startswith(f"{workflow_id}  order  completed  took ")
    steps = [line.split() for line in timeline if line[:4].strip().isdigit()]
    assert [step[0] for step in steps] == ["1", "2"]
    assert "task charge" in timeline[5] and "completed" in timeline[5] and '"ch_1"' in timeline[5]
    assert "received" in timeline[6] and '{"by":"ada"}' in timeline[6]
    assert "workflow completed" in timeline[-1]
    again = command.ok("start", "order", workflow_id, "456", "--wait").out
    assert again.startswith("already there since") and '["ch_1",{"by":"ada"}]' in again
    listed = command.json("list", "--workflows", "--key", workflow_id)["executions"]
    assert [run["workflow_id"] for run in listed] == [workflow_id]
    steps = command.json("list", "--parent", workflow_id)["executions"]
    assert [step["type"] for step in steps] == ["charge"]
    assert f"{workflow_id}, step 1" in command.ok("get", steps[0]["id"]).out


def test_json_is_what_the_api_says(command, caller, fresh):
    workflow_id = fresh("order")
    receipt = command.json("start", "order", workflow_id, "1")
    assert receipt["execution"]["workflow_id"] == workflow_id
    answer = command.json("signal", workflow_id, "news", "7", "--request-key", fresh("key"))
    assert (answer["workflow_id"], answer["signal"], answer["idempotency_replayed"]) == (workflow_id, "news", False)
    assert command.json("history", workflow_id)["events"] == caller.history(workflow_id)
    fork = command.json("fork", workflow_id, "--from-step", "1", "--workflow-id", f"{workflow_id}-2")
    assert (fork["workflow_id"], fork["forked_from"], fork["from_step"]) == (f"{workflow_id}-2", workflow_id, 1)
    assert command.json("cancel", workflow_id)["changed"] is True
    assert command.json("resume", workflow_id)["status"] == "pending"
    assert command.json("get", workflow_id)["id"] == receipt["execution"]["id"]


def test_a_request_key_makes_an_operation_one(command, caller, fresh):
    workflow_id, key = fresh("order"), fresh("key")
    command.ok("start", "order", workflow_id)
    for text in ("sent the signal go", "done before under this request key"):
        assert text in command.ok("signal", workflow_id, "go", "1", "--request-key", key).out
    assert command.run("signal", workflow_id, "go", "2", "--request-key", key).code == REFUSED
    assert len(caller.history(workflow_id)) == 1


@pytest.mark.parametrize(
    "arguments, code",
    [
        (["get", "no-such-workflow"], NOT_FOUND),
        (["history", "no-such-workflow"], NOT_FOUND),
        (["cancel", "no-such-workflow"], NOT_FOUND),
        (["resume", "no-such-workflow"], NOT_FOUND),
        (["signal", "no-such-workflow", "s"], NOT_FOUND),
        (["fork", "no-such-workflow", "--from-step", "1"], NOT_FOUND),
        (["fork", "no-such-workflow"], NOT_FOUND),
        (["fork", "no-such-workflow", "--from-step=-1"], USAGE),
        (["start", "order"], USAGE),
        (["start", "order", "x" * 256], USAGE),
        (["signal", "w", "s", "no json"], USAGE),
    ],
)
def test_what_goes_wrong_has_its_exit_code(command, arguments, code):
    ended = command.run(*arguments)
    assert ended.code == code and ended.err.count("hapax: ") == 1


def test_a_failed_workflow_sets_the_exit_code_of_a_wait(command, caller, fresh):
    def fails(ctx, _):
        raise ValueError("no stock")
        yield

    queue, workflow_id = fresh("queue"), fresh("order")
    caller.begin("fails", workflow_id, queue=queue)
    WorkflowWorker(caller.http, {"fails": fails}, {}, [queue]).until_closed(workflow_id)

    ended = command.run("start", "fails", workflow_id, "--queue", queue, "--reuse", "reject", "--wait")

    assert ended.code == TASK_FAILED and "ValueError: no stock" in ended.out
    assert command.json("get", workflow_id)["error"]["type"] == "ValueError"


def test_namespaces_apply(command, shared_server, fresh):
    workflow_id = fresh("order")
    command.ok("start", "order", workflow_id, "--namespace", "shop")
    assert command.run("get", workflow_id).code == NOT_FOUND
    assert Caller(shared_server, namespace="shop").workflow(workflow_id)["status"] == "pending"
