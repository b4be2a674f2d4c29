"""Workers announce themselves with their claims, and `why` knows when nobody claims."""

import socket

import pytest

from caller import Caller
from command import OK, Command
from conftest import eventually
from workflow_worker import WorkflowWorker

PYTHON = {"sdk": {"name": "python", "version": "3.1"}, "host": "node-7", "pid": 4711}


def claim(caller, **fields):
    answer = caller.http.post("/v1/claims", {"worker": "w", **fields})
    assert answer.status == 200, answer
    return answer.json["claims"]


def workers(caller):
    answer = caller.http.get("/v1/workers")
    assert answer.status == 200, answer
    return {worker["name"]: worker for worker in answer.json["workers"]}


def known(caller, name, condition=lambda worker: True):
    """The worker, once the server has told the store of it."""
    return eventually(lambda: (worker := workers(caller).get(name)) and condition(worker) and worker)


def because(caller, path):
    answer = caller.http.get(path + "/why")
    assert answer.status == 200, answer
    return answer.json["because"]


def test_a_claim_says_who_the_worker_is(caller, fresh):
    queue, name = fresh("queue"), fresh("worker")
    claim(caller, worker=name, queues=[queue, "mail"], types=["ship", "charge"], **PYTHON)
    worker = known(caller, name)
    assert worker.pop("last_seen_at").endswith("Z")
    assert worker == {
        "name": name, "host": "node-7", "pid": 4711, "sdk": {"name": "python", "version": "3.1"},
        "queues": sorted([queue, "mail"]), "types": ["charge", "ship"], "kinds": ["task"], "running": 0,
    }


def test_a_worker_need_not_say_more_than_its_name(caller, fresh):
    name = fresh("worker")
    claim(caller, worker=name)
    worker = known(caller, name)
    assert (worker["host"], worker["pid"], worker["sdk"], worker["types"]) == (None, None, None, [])
    assert worker["queues"] == ["default"]


def test_what_a_worker_holds_is_counted(caller, fresh):
    queue, name = fresh("queue"), fresh("worker")
    for _ in range(3):
        caller.create(queue=queue)
    claims = claim(caller, worker=name, queues=[queue], limit=2)
    assert known(caller, name)["running"] == 2
    caller.finish(claims[0]["lease"])
    assert workers(caller)[name]["running"] == 1


def test_a_worker_that_claims_tasks_and_turns_apart_is_one(caller, fresh):
    queue, name = fresh("queue"), fresh("worker")
    claim(caller, worker=name, queues=[queue], types=["charge"])
    claim(caller, worker=name, queues=[queue], kinds=["workflow"], types=["order"])
    worker = known(caller, name, lambda worker: worker["kinds"] == ["task", "workflow"])
    assert worker["types"] == ["charge", "order"]


def test_each_namespace_has_its_own_workers(shared_server, fresh):
    name = fresh("worker")
    theirs = Caller(shared_server, namespace="theirs")
    claim(theirs, worker=name)
    known(theirs, name)
    assert name not in workers(Caller(shared_server))


@pytest.mark.parametrize(
    "fields, pointer",
    [
        ({"sdk": "python"}, "/sdk"),
        ({"sdk": {"version": "1"}}, "/sdk/name"),
        ({"sdk": {"name": "a" * 129}}, "/sdk/name"),
        ({"sdk": {"name": "python", "version": "\x07"}}, "/sdk/version"),
        ({"sdk": {"name": "python", "colour": "red"}}, "/sdk/colour"),
        ({"host": ""}, "/host"),
        ({"host": 7}, "/host"),
        ({"pid": 0}, "/pid"),
        ({"pid": 2**32}, "/pid"),
        ({"pid": "7"}, "/pid"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_changes(caller, fresh, fields, pointer):
    queue, name = fresh("queue"), fresh("worker")
    task = caller.create(queue=queue)
    answer = caller.http.post("/v1/claims", {"worker": name, "queues": [queue], **fields})
    assert (answer.status, answer.json["pointer"]) == (400, pointer), answer
    assert caller.task(task["id"])["status"] == "pending"
    assert name not in workers(caller)


def test_why_says_that_nobody_claims(caller, fresh):
    queue, name = fresh("queue"), fresh("worker")
    task = caller.create("charge", queue=queue)
    path = f"/v1/tasks/{task['id']}"
    nobody = {"code": "no_worker", "queue": queue, "type": "charge", "workers": [], "running": 0}
    assert because(caller, path) == [nobody]
    claim(caller, worker=name, queues=[queue], types=["mail"])
    known(caller, name)
    assert because(caller, path) == [{**nobody, "workers": [name]}]
    assert claim(caller, worker=name, queues=[queue], types=["mail", "charge"])
    other = caller.create("charge", queue=queue)
    eventually(lambda: because(caller, f"/v1/tasks/{other['id']}") == [])


def test_why_says_that_nobody_claims_workflows(caller, fresh):
    queue, id = fresh("queue"), fresh("order")
    caller.begin("order", id, queue=queue)
    (reason,) = because(caller, f"/v1/workflows/{id}")
    assert (reason["code"], reason["queue"], reason["type"]) == ("no_workflow_worker", queue, "order")
    worker = WorkflowWorker(caller.http, {"unrelated": None}, queues=[queue], name=fresh("worker"))
    worker.claim(kinds=["workflow"])
    (reason,) = eventually(lambda: (found := because(caller, f"/v1/workflows/{id}"))[0]["workers"] and found)
    assert reason["workers"] == [worker.name]
    assert known(caller, worker.name)["sdk"]["name"] == "workflow_worker.py"


@pytest.mark.parametrize("where", ["url", "store"])
def test_hapax_work_and_hapax_workers(where, tmp_path, server):
    store = ["--store", f"sqlite:{tmp_path}/q.db"]
    command = Command(tmp_path, ["--url", f"http://127.0.0.1:{server.port}"] if where == "url" else store)
    process = command.start("work", "--exec", "true", "--queue", "mail", "--type", "send", "--name", "mailer")
    try:
        if where == "store":
            eventually((tmp_path / "q.db").exists)
        (worker,) = eventually(lambda: (said := command.run("workers", "--json")).code == OK and said.json["workers"])
        assert worker["name"] == "mailer"
        assert worker["sdk"] == {"name": "hapax work", "version": command.ok("version", where=[]).out.split()[-1]}
        assert (worker["host"], worker["pid"]) == (socket.gethostname(), process.pid)
        assert (worker["queues"], worker["types"], worker["kinds"]) == (["mail"], ["send"], ["task"])
        line = command.ok("workers").out.splitlines()[1]
        assert line.split()[:3] == ["mailer", "hapax", "work"]
        task = command.json("submit", "charge", "--queue", "mail")["execution"]["id"]
        assert "by mailer." in command.ok("why", task).out
    finally:
        process.kill()
        process.communicate()


def test_metrics_know_the_queues_that_nobody_claims(server):
    caller = Caller(server)
    caller.create(queue="mail")
    text = caller.http.get("/metrics").body.decode()
    assert 'hapax_queue_unclaimed{namespace="default",queue="mail"} 0' in text, "not before a minute is over"


def test_a_stuck_workflow_is_counted_and_logged(server):
    caller = Caller(server)
    run = caller.begin("order", "stuck-1")
    worker = WorkflowWorker(caller.http, {"unrelated": None})
    worker.takes_all = True
    assert worker.work()
    assert caller.workflow("stuck-1")["status"] == "suspended"
    assert "hapax_stuck_turns_total 1" in caller.http.get("/metrics").body.decode()
    eventually(lambda: f"a workflow is stuck: UnknownType; `hapax why {run['id']}` says more" in server.log)
