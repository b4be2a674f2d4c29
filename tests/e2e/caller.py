"""The verbs of the API for tests. Those that return a Response leave the check to the test; the others require
success."""

import itertools
from urllib.parse import quote

from client import ABSENT, Client

_request_keys = itertools.count(1)


def workflow_path(workflow_id, *parts):
    return "/".join(["/v1/workflows", quote(workflow_id, safe=""), *parts])


def activity_path(id, *parts):
    return "/".join(["/v1/activities", quote(id, safe=""), *parts])


class Caller:
    def __init__(self, server, namespace=None, token=None):
        headers = {}
        if namespace:
            headers["Hapax-Namespace"] = namespace
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self.http = Client(lambda: server.port, headers)

    # ---- submitting

    def submit(self, type="charge", *, headers=None, **fields):
        return self.http.post("/v1/tasks", {"type": type, **fields}, headers=headers)

    def create(self, type="charge", **fields):
        """The new execution."""
        answer = self.submit(type, **fields)
        assert answer.status == 201, answer
        return answer.json["execution"]

    def batch(self, *tasks):
        return self.http.post("/v1/tasks/batch", {"tasks": list(tasks)})

    # ---- working

    def claim(self, *queues, limit=1, wait="0", lease="60s", worker="w"):
        body = {"worker": worker, "queues": list(queues), "limit": limit, "wait": wait, "lease": lease}
        answer = self.http.post("/v1/claims", body)
        assert answer.status == 200, answer
        return answer.json["claims"]

    def claim_one(self, queue, wait="10s", **options):
        claims = self.claim(queue, wait=wait, **options)
        assert len(claims) == 1, claims
        return claims[0]

    def heartbeat(self, lease, length="60s"):
        answer = self.http.post("/v1/claims/heartbeat", {"leases": [lease], "lease": length})
        assert answer.status == 200, answer
        return answer.json["leases"][0]

    def give_back(self, *leases):
        answer = self.http.post("/v1/claims/return", {"leases": list(leases)})
        assert answer.status == 200, answer
        return answer.json["leases"]

    def finish(self, lease, result=ABSENT):
        outcome = {"lease": lease} if result is ABSENT else {"lease": lease, "result": result}
        return self._report(outcome)

    def fail(self, lease, type="Boom", message="it broke", retryable=True):
        return self._report({"lease": lease, "error": {"type": type, "message": message, "retryable": retryable}})

    def _report(self, outcome):
        answer = self.http.post("/v1/claims/finish", {"outcomes": [outcome]})
        assert answer.status in (200, 409), answer
        (said,) = answer.json["outcomes"]
        assert said.get("error") == ("LeaseLost" if answer.status == 409 else None), answer
        return said

    # ---- reading and control

    def task(self, id):
        answer = self.http.get(f"/v1/tasks/{id}")
        assert answer.status == 200, answer
        return answer.json

    def result(self, id, wait=None):
        return self.http.get(f"/v1/tasks/{id}/result" + (f"?wait={wait}" if wait else ""))

    def closed(self, id, wait="10s"):
        """The execution, once it is closed."""
        answer = self.result(id, wait)
        assert answer.status == 200, answer
        return self.task(id)

    def list(self, **filter):
        """Up to `limit`, over as many pages as needed: a page also ends at its size limit."""
        limit, found = filter.pop("limit", 100), []
        while True:
            query = "&".join(f"{name}={value}" for name, value in {**filter, "limit": limit - len(found)}.items())
            answer = self.http.get(f"/v1/tasks?{query}")
            assert answer.status == 200, answer
            found += answer.json["executions"]
            filter["cursor"] = answer.json["next_cursor"]
            if len(found) >= limit or filter["cursor"] is None:
                return found

    def cancel(self, id, key=None):
        return self.control("cancel", id, key)

    def retry(self, id, key=None):
        return self.control("retry", id, key)

    def control(self, action, id, key=None):
        key = key or f"request-{next(_request_keys)}"
        return self.http.post(f"/v1/tasks/{id}/{action}", headers={"Idempotency-Key": key})

    # ---- workflows

    def start(self, type, workflow_id, *, headers=None, **fields):
        return self.http.post("/v1/workflows", {"type": type, "workflow_id": workflow_id, **fields}, headers=headers)

    def begin(self, type, workflow_id, **fields):
        """The new run."""
        answer = self.start(type, workflow_id, **fields)
        assert answer.status == 201, answer
        return answer.json["execution"]

    def workflow(self, workflow_id):
        answer = self.http.get(workflow_path(workflow_id))
        assert answer.status == 200, answer
        return answer.json

    def history(self, workflow_id, **query):
        text = "&".join(f"{name}={value}" for name, value in query.items())
        answer = self.http.get(workflow_path(workflow_id, "history") + (f"?{text}" if text else ""))
        assert answer.status == 200, answer
        return answer.json["events"]

    def workflow_result(self, workflow_id, wait=None):
        return self.http.get(workflow_path(workflow_id, "result") + (f"?wait={wait}" if wait else ""))

    def cancel_workflow(self, workflow_id, key=None):
        return self.control_workflow("cancel", workflow_id, key)

    def resume(self, workflow_id, key=None):
        return self.control_workflow("resume", workflow_id, key)

    def fork(self, old, from_step, key=None, **fields):
        return self.control_workflow("fork", old, key, {"from_step": from_step, **fields})

    def signal(self, workflow_id, name, payload=ABSENT, key=None):
        body = {} if payload is ABSENT else {"payload": payload}
        return self.control_workflow("signals/" + quote(name, safe=""), workflow_id, key, body)

    def control_workflow(self, action, workflow_id, key=None, body=ABSENT):
        headers = {"Idempotency-Key": key or f"request-{next(_request_keys)}"}
        return self.http.post(workflow_path(workflow_id) + "/" + action, body, headers=headers)

    def metric(self, name):
        """The sum over all labels, None if there is no such metric."""
        answer = self.http.get("/metrics")
        assert answer.status == 200, answer
        lines = (line.rsplit(" ", 1) for line in answer.body.decode().splitlines() if not line.startswith("#"))
        values = [float(value) for metric, value in lines if metric.partition("{")[0] == name]
        return sum(values) if values else None

    # ---- activities and events

    def define(self, id, trigger, workflow=None, **settings):
        """The activity; by default it starts workflows of type "w"."""
        if "tasks" not in settings:
            settings["workflow"] = workflow or {"type": "w", "queue": "activities"}
        answer = self.http.put(activity_path(id), {"trigger": trigger, **settings})
        assert answer.status in (200, 201), answer
        return answer.json

    def activity(self, id):
        answer = self.http.get(activity_path(id))
        assert answer.status == 200, answer
        return answer.json

    def activity_runs(self, id):
        """All rows of its ledger, newest first."""
        runs, cursor = [], ""
        while cursor is not None:
            answer = self.http.get(activity_path(id, "runs") + "?limit=1000" + (f"&cursor={quote(cursor, safe='')}" if cursor else ""))
            assert answer.status == 200, answer
            runs += answer.json["runs"]
            cursor = answer.json["next_cursor"]
        return runs

    def trigger(self, id, key=None):
        return self.http.post(activity_path(id, "trigger"), headers={"Idempotency-Key": key} if key else {})

    def backfill(self, id, start, end, **options):
        return self.http.post(activity_path(id, "backfill"), {"from": start, "to": end, **options})

    def send_event(self, event):
        """Sends an event in structured mode and returns its outcome."""
        (receipt,) = self.send_events(event, "application/cloudevents+json")
        return receipt

    def send_events(self, events, content_type="application/cloudevents-batch+json"):
        answer = self.http.post("/v1/events", events, headers={"Content-Type": content_type})
        assert answer.status == 200, answer
        return answer.json["events"]

    # ---- settings

    def put_queue(self, name, **settings):
        answer = self.http.put(f"/v1/queues/{name}", settings)
        assert answer.status == 200, answer
        return answer.json

    def put_type(self, name, **settings):
        answer = self.http.put(f"/v1/types/{name}", settings)
        assert answer.status == 200, answer
        return answer.json
