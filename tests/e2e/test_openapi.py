"""/openapi.json is true and complete: the test calls every route and compares every answer with it."""

import json
import re
import sqlite3
from urllib.parse import quote

import jsonschema
import pytest

from caller import Caller
from openapi_updates import walk_updates

METHODS = ("get", "put", "post", "delete", "patch")
UNKNOWN_ID = "019bf2d4-0000-7000-8000-000000000000"

# Answers that single requests cannot cause: the server itself fails or shuts down.
NOT_PROVOKED = {"500", "503"}


class Description:
    def __init__(self, document):
        self.document = document
        self.resolver = jsonschema.RefResolver(base_uri="", referrer=document)

    def resolve(self, node):
        while "$ref" in node:
            node = self.resolver.resolve(node["$ref"])[1]
        return node

    def operations(self):
        for path, item in self.document["paths"].items():
            for method in METHODS:
                if method in item:
                    yield method, path, item[method]

    def responses(self, method, path):
        operation = self.document["paths"][path][method]
        return {status: self.resolve(response) for status, response in operation["responses"].items()}

    def find(self, method, path):
        """The description of a real path; the most literal template that fits."""
        candidates = [
            template
            for template in self.document["paths"]
            if re.fullmatch(re.sub(r"\\{[^/]+?\\}", "[^/]+", re.escape(template)), path)
            and method in self.document["paths"][template]
        ]
        return min(candidates, key=lambda template: template.count("{")) if candidates else None

    def validate(self, instance, schema):
        validator = jsonschema.Draft202012Validator(
            schema, resolver=self.resolver, format_checker=jsonschema.FormatChecker()
        )
        return [f"{error.json_path}: {error.message[:300]}" for error in validator.iter_errors(instance)]


class Witness:
    """Makes requests and compares each answer with the description."""

    def __init__(self, description):
        self.description = description
        self.provoked = set()
        self.trouble = []

    def call(self, caller, method, path, body=None, expect=None, **options):
        answer = caller.http.request(method.upper(), path, **({"body": body} if body is not None else {}), **options)
        self.check(method, path, answer)
        if expect is not None:
            assert answer.status == expect, (method, path, answer)
        return answer

    def check(self, method, path, answer):
        template = self.description.find(method, path.partition("?")[0])
        if template is None:
            self.trouble.append(f"{method} {path} is not in the description")
            return
        status = str(answer.status)
        described = self.description.responses(method, template)
        self.provoked.add((method, template, status))
        where = f"{method} {template} {status}"
        if status not in described:
            self.trouble.append(f"{where} is not in the description: {answer}")
            return
        content = described[status].get("content")
        if content is None:
            self.trouble += [f"{where}: has a body"] if answer.body else []
            return
        media = answer.headers.get("content-type", "").partition(";")[0]
        if media not in content:
            self.trouble.append(f"{where}: {media!r} is none of {sorted(content)}")
        elif media == "application/json":
            schema = content[media]["schema"]
            self.trouble += [f"{where}: {error}" for error in self.description.validate(answer.json, schema)]
        for name, header in described[status].get("headers", {}).items():
            if header.get("required") and name.lower() not in answer.headers:
                self.trouble.append(f"{where}: no header {name}")


@pytest.fixture(scope="module")
def description(shared_server):
    answer = shared_server.client.get("/openapi.json")
    assert answer.status == 200
    return Description(answer.json)


def walk_tasks(witness, caller):
    call = lambda *arguments, **options: witness.call(caller, *arguments, **options)  # noqa: E731
    key = {"type": "charge", "idempotency_key": "walk", "input": {"n": 1}}
    task = call("post", "/v1/tasks", key, expect=201).json["execution"]
    call("post", "/v1/tasks", key, expect=200)
    call("post", "/v1/tasks", {**key, "input": 2}, expect=409)
    call("post", "/v1/tasks", {**key, "on_duplicate": "error"}, expect=409)
    call("post", "/v1/tasks", {**key, "dry_run": True}, expect=200)
    call("post", "/v1/tasks", {"type": ""}, expect=400)
    call("post", "/v1/tasks", raw=b"{", expect=400)
    call("post", "/v1/tasks", {"type": "t", "identity": "contextual", "identity_fields": ["/x"]}, expect=400)
    call("post", "/v1/tasks", {"type": "t", "identity": "caller_provided"}, expect=400)
    call(
        "post",
        "/v1/tasks",
        {
            "type": "full",
            "queue": "full",
            "input": [1, None, "x"],
            "scope": "tenant",
            "idempotency_key": "full",
            "reuse": "reject",
            "on_duplicate": "return",
            "idempotency_ttl": "1h",
            "priority": 3,
            "delay": "1h",
            "max_attempts": 2,
            "retry": {"initial": "1s", "factor": 3, "max": "1m"},
            "timeout": "1m",
            "deadline": "2h",
            "concurrency_key": "c",
        },
        expect=201,
    )
    call("post", "/v1/tasks/batch", {"tasks": [key, {**key, "input": 2}, {"type": 1}, {"type": "t"}]}, expect=200)
    call("post", "/v1/tasks/batch", {"tasks": 1}, expect=400)
    call("post", "/v1/batch/workflows", {"workflows": [{"type": "w", "workflow_id": "batch"}, {"type": "w"}]}, expect=200)
    call("post", "/v1/batch/workflows", {"workflows": []}, expect=400)
    call("get", "/v1/tasks", expect=200)
    call("get", "/v1/tasks?limit=1", expect=200)
    call("get", "/v1/tasks?limit=x", expect=400)
    call("get", f"/v1/tasks/{task['id']}", expect=200)
    call("get", f"/v1/tasks/{task['id']}?colour=red", expect=400)
    call("get", f"/v1/tasks/{UNKNOWN_ID}", expect=404)
    call("get", f"/v1/tasks/{task['id']}/result", expect=202)
    call("get", f"/v1/tasks/{task['id']}/result?wait=x", expect=400)
    call("get", f"/v1/tasks/{UNKNOWN_ID}/result", expect=404)
    call("get", f"/v1/tasks/{task['id']}/why", expect=200)
    call("get", f"/v1/tasks/{task['id']}/why?colour=red", expect=400)
    call("get", f"/v1/tasks/{UNKNOWN_ID}/why", expect=404)
    for part in ("why", "values"):
        call("get", f"/v1/workflows/batch/{part}", expect=200)
        call("get", f"/v1/workflows/batch/{part}?colour=red", expect=400)
        call("get", f"/v1/workflows/unknown/{part}", expect=404)
    return task


def walk_claims(witness, caller, task):
    call = lambda *arguments, **options: witness.call(caller, *arguments, **options)  # noqa: E731
    call("post", "/v1/claims", {"queues": ["nothing"]}, expect=200)
    call("post", "/v1/claims", {"queues": []}, expect=400)
    call("post", "/v1/claims", {"queues": ["nothing"], "sdk": {"name": "walk"}, "host": "h", "pid": 1}, expect=200)
    call("post", "/v1/claims", {"queues": ["nothing"], "pid": 0}, expect=400)
    call("get", "/v1/workers", expect=200)
    call("get", "/v1/workers?colour=red", expect=400)
    claims = call("post", "/v1/claims", {"worker": "w", "queues": ["default"], "limit": 10}, expect=200).json["claims"]
    lease = next(claim["lease"] for claim in claims if claim["execution"]["id"] == task["id"])
    call("post", "/v1/claims/heartbeat", {"leases": [lease, "stale"]}, expect=200)
    call("post", "/v1/claims/heartbeat", {"leases": 1}, expect=400)
    call("post", "/v1/claims/return", {"leases": [lease, "stale"]}, expect=200)
    call("post", "/v1/claims/return", {"leases": 1}, expect=400)
    claims = call("post", "/v1/claims", {"worker": "w", "queues": ["default"], "limit": 10}, expect=200).json["claims"]
    lease = next(claim["lease"] for claim in claims if claim["execution"]["id"] == task["id"])
    outcomes = [{"lease": lease, "result": {"ok": 1}}, {"lease": "stale"}]
    call("post", "/v1/claims/finish", {"outcomes": outcomes}, expect=200)
    call("post", "/v1/claims/finish", {"outcomes": [{"lease": "stale"}]}, expect=409)
    call("post", "/v1/claims/finish", {"outcomes": 1}, expect=400)
    call("get", f"/v1/tasks/{task['id']}/result", expect=200)
    duplicate = {"type": "charge", "idempotency_key": "walk", "input": {"n": 1}}
    call("post", "/v1/tasks", duplicate, expect=200)
    call("post", "/v1/tasks", {**duplicate, "on_duplicate": "error"}, expect=409)


def walk_control(witness, caller):
    for action in ("cancel", "retry"):
        task = caller.create(queue="control", max_attempts=1)

        def call(id, key=None, **options):
            headers = {"Idempotency-Key": key} if key else {}
            return witness.call(caller, "post", f"/v1/tasks/{id}/{action}", headers=headers, **options)

        if action == "retry":
            call(task["id"], "too-early", expect=409)
            call(task["id"], "too-early", expect=409)
            caller.fail(caller.claim_one("control")["lease"])
        call(task["id"], f"{action}-1", expect=200)
        call(task["id"], f"{action}-1", expect=200)
        call(caller.create()["id"], f"{action}-1", expect=409)
        call(task["id"], None, expect=400)
        call(UNKNOWN_ID, f"{action}-2", expect=404)
    failed = caller.create(queue="control", max_attempts=1, idempotency_key="taken")
    # The task that the retry above brought back is claimed first.
    for claim in caller.claim("control", limit=10):
        caller.fail(claim["lease"])
    caller.create(queue="control", idempotency_key="taken")
    witness.call(caller, "post", f"/v1/tasks/{failed['id']}/retry", headers={"Idempotency-Key": "late"}, expect=409)
    witness.call(caller, "get", f"/v1/tasks/{failed['id']}", expect=200)
    witness.call(caller, "get", f"/v1/tasks/{failed['id']}/result", expect=200)


def walk_workflows(witness, caller):
    call = lambda *arguments, **options: witness.call(caller, *arguments, **options)  # noqa: E731
    start = {"type": "w", "workflow_id": "walked/1", "queue": "flows", "input": 1}
    path = "/v1/workflows/walked%2F1"
    call("post", "/v1/workflows", start, expect=201)
    call("post", "/v1/workflows", start, expect=200)
    call("post", "/v1/workflows", {**start, "input": 2}, expect=409)
    call("post", "/v1/workflows", {**start, "on_duplicate": "error"}, expect=409)
    call("post", "/v1/workflows", {"type": "w"}, expect=400)
    call("get", "/v1/workflows", expect=200)
    call("get", "/v1/workflows?limit=x", expect=400)
    for part in ("", "/history"):
        call("get", path + part, expect=200)
    call("get", path + "/result", expect=202)
    for part in ("", "/history", "/result"):
        call("get", f"{path}{part}?colour=red", expect=400)
        call("get", f"/v1/workflows/unknown{part}", expect=404)
    walk_turns(witness, caller, path)
    for part in ("", "/history", "/result"):
        call("get", path + part, expect=200)
    call("post", "/v1/workflows", {**start, "on_duplicate": "error"}, expect=409)
    call("get", "/v1/workflows?workflow_id=walked%2F1", expect=200)


def walk_turns(witness, caller, path):
    call = lambda *arguments, **options: witness.call(caller, *arguments, **options)  # noqa: E731

    def claim():
        while True:
            body = {"queues": ["flows"], "kinds": ["workflow"], "limit": 10, "wait": "10s"}
            claims = call("post", "/v1/claims", body, expect=200).json["claims"]
            assert claims
            mine = [claim for claim in claims if claim["execution"]["workflow_id"] == "walked/1"]
            if mine:
                return mine[0]

    start = {"type": "step", "queue": "flows"}
    commands = [
        {"step": 1, "kind": "task", "start": start},
        {"step": 2, "kind": "child", "start": {**start, "workflow_id": "walked/child"}},
        {"step": 3, "kind": "sleep", "until": "2099-01-01T00:00:00Z"},
        {"step": 4, "kind": "wait_signal", "name": "go"},
        {"step": 5, "kind": "side_effect", "name": "n", "value": None},
        {"step": 6, "kind": "version", "name": "v", "value": 1},
    ]
    turn = {"lease": claim()["lease"], "seen": 0, "commands": commands, "end": {"kind": "suspended"}}
    call("post", "/v1/claims/turns", {"turns": [turn, {**turn, "lease": "stale"}]}, expect=200)
    call("post", "/v1/claims/turns", {"turns": [{**turn, "lease": "stale"}]}, expect=409)
    call("post", "/v1/claims/turns", {"turns": 1}, expect=400)
    call("get", "/v1/tasks?parent=walked%2F1", expect=200)
    walk_workflow_control(witness, caller, path)
    walk_updates(witness, caller)
    stuck = {"kind": "stuck", "error": {"type": "NonDeterminism", "message": "step 1"}}
    call("post", "/v1/claims/turns", {"turns": [{"lease": claim()["lease"], "seen": 7, "end": stuck}]}, expect=200)
    call("get", path, expect=200)
    call("get", path + "/history", expect=200)
    done = {"kind": "completed", "result": 1}
    call("post", "/v1/claims/turns", {"turns": [{"lease": claim()["lease"], "seen": 9, "end": done}]}, expect=200)


def walk_workflow_control(witness, caller, path):
    def call(what, key, body=None, to=path, **options):
        headers = {"Idempotency-Key": key} if key else {}
        return witness.call(caller, "post", f"{to}/{what}", body, headers=headers, **options)

    call("signals/go", "s1", {"payload": 1}, expect=200)
    call("signals/go", "s1", {"payload": 1}, expect=200)
    call("signals/go", "s1", {"payload": 2}, expect=409)
    call("fork", "f1", {"from_step": 2}, expect=200)
    call("fork", "f2", {"from_step": 2, "workflow_id": "walked/1"}, expect=409)
    call("fork", "f2", {"from_step": 2, "workflow_id": "walked/1"}, expect=409)
    call("fork", "f3", {"from_step": 99}, expect=400)
    call("cancel", "c1", to="/v1/workflows/walked%2Fchild", expect=200)
    call("signals/go", "s2", to="/v1/workflows/walked%2Fchild", expect=409)
    call("cancel", "s1", expect=409)
    call("resume", "s1", expect=409)
    call("resume", "r1", to="/v1/workflows/walked%2Fchild", expect=200)
    for what, body in (("cancel", None), ("resume", None), ("fork", {"from_step": 1}), ("signals/go", None)):
        call(what, None, body, expect=400)
        call(what, f"unknown {what}", body, to="/v1/workflows/unknown", expect=404)


def walk_settings(witness, caller):
    call = lambda *arguments, **options: witness.call(caller, *arguments, **options)  # noqa: E731
    queue = {
        "retention": "1d",
        "rate_limit": "10/sec",
        "burst": 20,
        "max_running": 3,
        "concurrency_limit": 2,
        "cancel_grace": "5s",
        "idempotency_ttl": "1h",
        "paused": False,
    }
    call("put", "/v1/queues/walked", queue, expect=200)
    call("put", "/v1/queues/walked", {"retention": 1}, expect=400)
    call("get", "/v1/queues/walked", expect=200)
    call("get", "/v1/queues/never-seen", expect=200)
    call("get", "/v1/queues", expect=200)
    for action in ("pause", "unpause"):
        call("post", f"/v1/queues/walked/{action}", expect=200)
        call("post", f"/v1/queues/{'x' * 129}/{action}", expect=400)
    call("get", f"/v1/queues/{'x' * 129}", expect=400)
    type = {
        "queue": "walked",
        "identity": "contextual",
        "identity_fields": ["/order"],
        "scope": "global",
        "reuse": "reject",
        "on_duplicate": "error",
        "idempotency_ttl": "1h",
        "priority": 1,
        "max_attempts": 4,
        "retry": {"initial": "2s", "factor": 1.5, "max": "30s"},
        "timeout": "10s",
        "deadline": "1h",
    }
    call("put", "/v1/types/walked", type, expect=200)
    call("put", "/v1/types/walked", {"queue": 1}, expect=400)
    call("patch", "/v1/types/walked", {"max_attempts": 7, "timeout": None, "retry": {"max": None}}, expect=200)
    call("patch", "/v1/types/walked", {"queue": 1}, expect=400)
    call("patch", "/v1/types/tuned", {"priority": 3}, expect=200)
    call("put", "/v1/types/walked/code", {"max_attempts": 4}, expect=200)
    call("put", "/v1/types/walked/code", {"queue": 1}, expect=400)
    call("get", "/v1/types/walked", expect=200)
    call("get", f"/v1/types/{'x' * 129}", expect=400)
    call("get", "/v1/types", expect=200)
    for path in ("/v1/queues", "/v1/types"):
        call("get", f"{path}?colour=red", expect=400)


def walk_activities(witness, caller):
    call = lambda *arguments, **options: witness.call(caller, *arguments, **options)  # noqa: E731
    cron = {
        "expression": "0 0 9 * * MON-FRI",
        "timezone": "Europe/Berlin",
        "misfire_policy": "compress",
        "catchup_limit": 3,
        "misfire_grace": "5m",
        "overlap": "skip",
        "jitter": "1s",
    }
    scheduled = {
        "name": "Walked",
        "enabled": True,
        "workflow": {"type": "w", "input": {"n": 1}, "queue": "flows"},
        "trigger": {"cron": cron},
        "dedupe_key_strategy": "compress",
    }
    path = "/v1/activities/walked%201"
    call("put", path, scheduled, expect=201)
    call("put", path, scheduled, expect=200)
    call("put", path, {**scheduled, "dedupe_key_strategy": "catchup"}, expect=400)
    call("post", path + "/trigger", expect=201)
    key = {"Idempotency-Key": "once"}
    call("post", path + "/trigger", headers=key, expect=201)
    call("post", path + "/trigger", headers=key, expect=200)
    call("post", path + "/trigger", headers={"Idempotency-Key": " "}, expect=400)
    window = {"from": "2026-03-02T00:00:00Z", "to": "2026-03-04T00:00:00Z"}
    assert len(call("post", path + "/backfill", window, expect=200).json["runs"]) == 2
    call("post", path + "/backfill", {**window, "force": True}, expect=200)
    call("post", path + "/backfill", {**window, "force": "yes"}, expect=400)
    call("post", path + "/backfill", {"from": window["to"], "to": window["from"]}, expect=400)
    for action in ("pause", "unpause"):
        call("post", f"{path}/{action}", expect=200)
        call("post", f"{path}/{action}", {"why": "?"}, expect=400)
    walk_events(witness, caller)
    for part in ("", "/runs"):
        call("get", path + part, expect=200)
        call("get", f"{path}{part}?colour=red", expect=400)
        call("get", f"/v1/activities/unknown{part}", expect=404)
    call("get", "/v1/activities", expect=200)
    call("get", "/v1/activities?limit=1", expect=200)
    call("get", "/v1/activities?limit=0", expect=400)
    for action, body in (("trigger", None), ("backfill", window), ("pause", None), ("unpause", None)):
        call("post", f"/v1/activities/unknown/{action}", body, expect=404)
    call("delete", path, expect=204)
    call("delete", path, expect=404)
    call("delete", f"/v1/activities/{'x' * 129}", expect=400)


def walk_events(witness, caller):
    demands = [{"pointer": "/n", "equals": 1}, {"pointer": "/s", "prefix": "a"}, {"pointer": "/x", "exists": False}]
    trigger = {"event": {"type": "walked", "source": "/walk", "subject": "s", "where": demands, "dedupe_by": "id"}}
    tasks = [{"type": "t", "input": [1], "queue": "q"}, {"type": "u"}]
    witness.call(caller, "put", "/v1/activities/events", {"tasks": tasks, "trigger": trigger}, expect=201)
    event = {"specversion": "1.0", "id": "1", "type": "walked", "source": "/walk", "subject": "s", "data": {"n": 1, "s": "ab"}}

    def send(body, expect, kind="application/cloudevents+json"):
        headers = {"Content-Type": kind}
        return witness.call(caller, "post", "/v1/events", body, headers=headers, expect=expect).json

    assert send(event, 200)["events"][0]["started"] == ["activity-events:1"]
    batch = [event, {**event, "data": {"n": 1, "s": "ac"}}, {name: event[name] for name in event if name != "id"}]
    receipts = send(batch, 200, "application/cloudevents-batch+json")["events"]
    assert receipts[0]["duplicates"] and receipts[1]["conflicts"] and receipts[2]["id_assigned"]
    assert send({**event, "data": {"n": 1, "s": "ac"}}, 409)["events"][0]["conflicts"] == ["activity-events:1"]
    send({**event, "type": ""}, 400)
    witness.call(caller, "get", "/v1/activities/events", expect=200)
    witness.call(caller, "get", "/v1/activities/events/runs", expect=200)


def walk_identities(witness, caller):
    call = lambda *arguments, **options: witness.call(caller, *arguments, **options)  # noqa: E731
    caller.put_queue("tombstones", retention="0")
    caller.create(queue="tombstones", idempotency_key="tomb", idempotency_ttl="1h")
    caller.finish(caller.claim_one("tombstones")["lease"])
    call("get", "/v1/identities?type=charge&key=tomb", expect=200)
    call("post", "/v1/tasks", {"type": "charge", "queue": "tombstones", "idempotency_key": "tomb"}, expect=200)
    found = call("get", "/v1/identities?type=charge&key=walk", expect=200).json
    call("get", "/v1/identities?type=charge&key=unknown", expect=404)
    call("get", "/v1/identities", expect=400)
    path = f"/v1/identities/{quote(found['identity_hash'])}"
    call("delete", path, expect=200)
    call("delete", path, expect=200)
    call("delete", "/v1/identities/nonsense", expect=400)


def walk_operations(witness, caller):
    for path in ("/health", "/ready", "/metrics", "/openapi.json", "/"):
        witness.call(caller, "get", path, expect=200)


def takes_key(description, operation):
    return any(description.resolve(each)["name"] == "Idempotency-Key" for each in operation.get("parameters", []))


def provoke_everywhere(witness, start_server):
    """What every route can answer: no token, the wrong namespace, too much, the wrong kind of body."""
    config = '[server]\nmax_body = "1000"\n[tokens.shop]\ntoken = "t"\nnamespace = "shop"\n'
    config += '[tokens.everywhere]\ntoken = "e"\n'
    config += "[queues.held]\npaused = true\n[queues.open]\npaused = false\n"
    config += '[activities.fixed]\nworkflow = {type = "w"}\ntrigger = {cron = {expression = "@daily"}}\n'
    server = start_server("guarded", config=config)
    anonymous, stranger = Caller(server), Caller(server, token="t", namespace="bank")
    shop, everywhere = Caller(server, token="t"), Caller(server, token="e")
    witness.call(shop, "post", "/v1/queues/open/pause", expect=409)
    witness.call(shop, "post", "/v1/queues/held/unpause", expect=409)
    other = {"workflow": {"type": "w"}, "trigger": {"cron": {"expression": "@hourly"}}}
    witness.call(everywhere, "put", "/v1/activities/fixed", other, expect=409)
    witness.call(everywhere, "delete", "/v1/activities/fixed", expect=409)
    for method, template, operation in witness.description.operations():
        described = witness.description.responses(method, template)
        path = re.sub(r"\{[^}]*\}", UNKNOWN_ID, template)
        body = {"raw": b"{}"} if method in ("post", "put") else {}
        controls = "/cancel" in path or "/retry" in path or re.search("/v1/workflows/.+", path)
        key = {"Idempotency-Key": "k"} if controls and method == "post" else {}
        if not takes_key(witness.description, operation):
            witness.call(shop, method, path, **body, headers={"Idempotency-Key": "k"}, expect=400)
        if "401" in described:
            witness.call(anonymous, method, path, **body, expect=401)
        else:
            assert witness.call(anonymous, method, path, **body).status < 400, f"{method} {template} has no 401"
        if "403" in described:
            witness.call(stranger, method, path, **body, expect=403)
        if "413" in described:
            witness.call(shop, method, path, raw=b" " * 2000, headers=key, expect=413)
        if "415" in described:
            witness.call(shop, method, path, raw=b"<a/>", headers={"Content-Type": "text/xml", **key}, expect=415)


def test_every_route_and_answer_is_as_described(description, shared_server, start_server):
    witness, caller = Witness(description), Caller(shared_server)
    task = walk_tasks(witness, caller)
    walk_claims(witness, caller, task)
    walk_control(witness, caller)
    walk_workflows(witness, caller)
    walk_settings(witness, caller)
    walk_activities(witness, caller)
    walk_identities(witness, caller)
    walk_operations(witness, caller)
    provoke_everywhere(witness, start_server)

    assert witness.trouble == []
    described = {
        (method, path, status)
        for method, path, _ in description.operations()
        for status in description.responses(method, path)
        if status not in NOT_PROVOKED
    }
    assert {(m, p) for m, p, _ in described} == {(m, p) for m, p, _ in witness.provoked}, "routes never called"
    assert described - witness.provoked == set(), "answers that are described and never came"


def test_a_store_that_is_down_is_answered_as_described(description, start_server, tmp_path):
    server = start_server("locked")
    caller = Caller(server)
    task = caller.create(idempotency_key="k")
    witness = Witness(description)
    with sqlite3.connect(server.database, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")  # longer than the server is ready to wait
        witness.call(caller, "post", "/v1/tasks", {"type": "t"}, expect=503)
        witness.call(caller, "get", f"/v1/tasks/{task['id']}", expect=200)
        other.execute("ROLLBACK")
    assert witness.trouble == []
    assert caller.submit().status == 201


def test_the_document_is_openapi_3_1_and_hangs_together(description):
    document = description.document
    assert document["openapi"].startswith("3.1")
    assert document["info"]["title"] and document["info"]["version"]
    text = json.dumps(document)
    assert '"const":' not in text, "generators of clients stumble over it: say boolean, or an enum of one"
    for reference in set(re.findall(r'"\$ref": "([^"]+)"', text)):
        description.resolver.resolve(reference)
    identifiers = [operation["operationId"] for _, _, operation in description.operations()]
    assert len(identifiers) == len(set(identifiers))
    for method, path, operation in description.operations():
        parameters = [description.resolve(p) for p in operation.get("parameters", [])]
        parameters += [description.resolve(p) for p in document["paths"][path].get("parameters", [])]
        named = {p["name"] for p in parameters if p["in"] == "path"}
        assert named == set(re.findall(r"\{([^}]+)\}", path)), f"{method} {path}"
        assert operation.get("summary"), f"{method} {path}"
        assert any(status.startswith("2") for status in operation["responses"])
    for name, schema in document["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema)
        # Closed objects: a member that is not described is an error, so that the description is complete.
        assert name in ("Problem", "Because") or all(is_closed(each) for each in objects_in(schema)), name


def is_closed(schema):
    return schema.get("additionalProperties") is False or "propertyNames" in schema


def objects_in(schema):
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            yield schema
        for part in schema.values():
            yield from objects_in(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from objects_in(part)


def examples_of(media):
    if "example" in media:
        yield media["example"]
    for example in media.get("examples", {}).values():
        yield example["value"]


def test_every_example_fits_its_schema_and_every_example_request_is_accepted(description, start_server):
    caller, count = Caller(start_server("examples")), 0
    for method, path, operation in description.operations():
        for status, response in description.responses(method, path).items():
            for media in response.get("content", {}).values():
                for example in examples_of(media):
                    assert description.validate(example, media["schema"]) == [], f"{method} {path} {status}"
        request = description.resolve(operation.get("requestBody", {}))
        for content_type, media in request.get("content", {}).items():
            for example in examples_of(media):
                count += 1
                assert description.validate(example, media["schema"]) == [], f"{method} {path}"
                real_path = re.sub(r"\{[^}]*\}", "example", path)
                headers = {"Content-Type": content_type}
                answer = caller.http.request(method.upper(), real_path, body=example, headers=headers)
                # The lease of an example belongs to no one: a lost lease is the only error allowed.
                assert answer.status < 400 or answer.json["error"] == "LeaseLost", (method, path, answer)
    for schema in description.document.get("components", {}).get("schemas", {}).values():
        for example in schema.get("examples", []):
            assert description.validate(example, schema) == []
    assert count > 0, "no example request in the description"


def test_the_schema_of_a_submission_refuses_what_the_server_refuses(description, caller):
    operation = description.document["paths"]["/v1/tasks"]["post"]
    schema = description.resolve(operation["requestBody"])["content"]["application/json"]["schema"]
    wrong = [{"colour": 1}, {"reuse": "never"}, {"dry_run": 1}, {"priority": "high"}, {"retry": {"speed": 1}}]
    for body in [{}, {"type": 1}, *({"type": "t", **fields} for fields in wrong)]:
        assert caller.http.post("/v1/tasks", body).status == 400
        assert description.validate(body, schema) != [], body
