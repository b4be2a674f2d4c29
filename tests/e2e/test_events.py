"""CloudEvents in every mode, also from a real SDK: which activities they start, and the answer to a repeated event."""

import json
import pathlib
import random
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from caller import Caller
from test_activities import stored_workflows

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "chaos"))
from postgres import Postgres  # noqa: E402

BATCH = "application/cloudevents-batch+json"
STRUCTURED = "application/cloudevents+json"


def event(id="e1", type="order.paid", source="/shop", data=None, **attributes):
    made = {"specversion": "1.0", "id": id, "type": type, "source": source, "datacontenttype": "application/json", **attributes}
    if data is not None:
        made["data"] = data
    return {name: value for name, value in made.items() if value is not None}


@pytest.fixture
def space(shared_server, fresh):
    """A caller in the test's own namespace."""
    return Caller(shared_server, namespace=fresh("events"))


def binary_headers(event):
    headers = {f"ce-{name}": value for name, value in event.items() if name not in ("data", "datacontenttype")}
    return {**headers, "Content-Type": event["datacontenttype"]}


# ---- modes


def test_the_same_event_in_three_modes_is_one_event(space):
    space.define("ship", {"event": {"type": "order.paid"}}, workflow={"type": "w", "input": {"fast": True}})
    paid = event(data={"order": 9007199254740993}, subject="order 456", traceparent="00-1")
    first = space.http.post("/v1/events", paid, headers={"Content-Type": STRUCTURED + "; charset=UTF-8"})
    assert first.json == {
        "events": [{"id": "e1", "id_assigned": False, "started": ["activity-ship:e1"], "duplicates": [], "conflicts": []}]
    }
    headers = {**binary_headers(paid), "ce-subject": "order%20456"}
    second = space.http.post("/v1/events", paid["data"], headers=headers)
    third = space.http.post("/v1/events", [paid], headers={"Content-Type": BATCH})
    for again in (second, third):
        assert again.json == {
            "events": [{"id": "e1", "id_assigned": False, "started": [], "duplicates": ["activity-ship:e1"], "conflicts": []}]
        }
    assert space.workflow("activity-ship:e1")["input"] == {"fast": True, "event": paid}
    (run,) = space.activity_runs("ship")
    assert (run["event_id"], run["disposition"], run["workflow_id"]) == ("e1", "ran", "activity-ship:e1")
    assert "scheduled_for" not in run


@pytest.mark.parametrize(
    "content_type, body, member, value",
    [
        ("text/plain", "grüße".encode(), "data", "grüße"),
        ("application/octet-stream", b"\x00\xff", "data_base64", "AP8="),
        ("application/vnd.shop+json", b"[1]", "data", [1]),
        (None, b'{"n": 1}', "data", {"n": 1}),
        (None, b'{"n": ', "data_base64", "eyJuIjog"),
    ],
)
def test_binary_mode_takes_any_data(space, content_type, body, member, value):
    space.define("any", {"event": {}})
    headers = {**binary_headers(event()), "Content-Type": content_type}
    answer = space.http.post("/v1/events", raw=body, headers=headers)
    assert answer.json["events"][0]["started"] == ["activity-any:e1"], answer
    seen = space.workflow("activity-any:e1")["input"]["event"]
    assert seen[member] == value
    assert seen.get("datacontenttype") == (content_type or ("application/json" if member == "data" else None))


def test_an_input_that_is_no_object_goes_beside_the_event(space):
    space.define("a", {"event": {}}, workflow={"type": "w", "input": [1, 2]})
    space.define("b", {"event": {}}, workflow={"type": "w"})
    space.send_event(event())
    assert space.workflow("activity-a:e1")["input"] == {"input": [1, 2], "event": event()}
    assert space.workflow("activity-b:e1")["input"] == {"event": event()}


NO_EVENTS = [
    (415, None, b"{}", {}),
    (415, None, b"{}", {"Content-Type": "application/json"}),
    (415, None, b"{}", {"Content-Type": "application/cloudevents+xml", "ce-id": "1"}),
    (400, None, b"{", {"Content-Type": STRUCTURED}),
    (400, "", b"[]", {"Content-Type": STRUCTURED}),
    (400, "", b"{}", {"Content-Type": BATCH}),
    (400, "/specversion", b'{"type":"t","source":"/s"}', {"Content-Type": STRUCTURED}),
    (400, "/specversion", b'{"specversion":"0.3","type":"t","source":"/s"}', {"Content-Type": STRUCTURED}),
    (400, "/type", b'{"specversion":"1.0","source":"/s"}', {"Content-Type": STRUCTURED}),
    (400, "/source", b'{"specversion":"1.0","type":"t"}', {"Content-Type": STRUCTURED}),
    (400, "/id", b'{"specversion":"1.0","type":"t","source":"/s","id":1}', {"Content-Type": STRUCTURED}),
    (400, "/type", b"", {"ce-specversion": "1.0", "ce-source": "/s"}),
    (400, "/data", b"{", {**binary_headers(event())}),
]


@pytest.mark.parametrize("status, pointer, body, headers", NO_EVENTS)
def test_an_invalid_event_is_refused_with_the_reason(space, status, pointer, body, headers):
    answer = space.http.request("POST", "/v1/events", raw=body, headers=headers)
    assert answer.status == status, answer
    assert answer.json.get("pointer") == pointer, answer
    if status == 415:
        assert STRUCTURED in answer.json["message"] and BATCH in answer.json["message"] and "ce-type" in answer.json["message"]


def test_one_bad_event_spoils_its_batch_and_nothing_is_started(space):
    space.define("any", {"event": {}})
    bad = event("e4")
    del bad["type"]
    answer = space.http.post("/v1/events", [event("e1"), event("e2"), event("e3"), bad], headers={"Content-Type": BATCH})
    assert (answer.status, answer.json["pointer"]) == (400, "/3/type"), answer
    assert space.activity_runs("any") == [] and stored_workflows(space, "activity-any:") == []
    too_many = [event(str(n)) for n in range(1001)]
    assert space.http.post("/v1/events", too_many, headers={"Content-Type": BATCH}).status == 400
    assert space.send_events([]) == []


# ---- which activities match

FILTERS = [
    ({}, {}, True),
    ({"type": "order.paid"}, {}, True),
    ({"type": "order"}, {}, False),
    ({"source": "/shop"}, {}, True),
    ({"source": "/bank"}, {}, False),
    ({"subject": "s"}, {"subject": "s"}, True),
    ({"subject": "s"}, {}, False),
    ({"where": [{"pointer": "/n", "equals": 1}]}, {"data": {"n": 1}}, True),
    ({"where": [{"pointer": "/n", "equals": 1}]}, {"data": {"n": "1"}}, False),
    ({"where": [{"pointer": "/n", "equals": None}]}, {"data": {"n": None}}, True),
    ({"where": [{"pointer": "", "equals": {"b": 1, "a": 2}}]}, {"data": {"a": 2, "b": 1}}, True),
    ({"where": [{"pointer": "/list/1", "equals": "x"}]}, {"data": {"list": ["w", "x"]}}, True),
    ({"where": [{"pointer": "/sku", "prefix": "book-"}]}, {"data": {"sku": "book-7"}}, True),
    ({"where": [{"pointer": "/sku", "prefix": "book-"}]}, {"data": {"sku": "pen-7"}}, False),
    ({"where": [{"pointer": "/sku", "prefix": "7"}]}, {"data": {"sku": 77}}, False),
    ({"where": [{"pointer": "/x", "exists": True}]}, {"data": {"x": None}}, True),
    ({"where": [{"pointer": "/x", "exists": True}]}, {"data": {}}, False),
    ({"where": [{"pointer": "/x", "exists": False}]}, {}, True),
    ({"where": [{"pointer": "/a~1b", "exists": True}, {"pointer": "/n", "equals": 1}]}, {"data": {"a/b": 0, "n": 2}}, False),
]


@pytest.mark.parametrize("trigger, attributes, fits", FILTERS)
def test_an_activity_gets_the_events_that_it_waits_for(space, trigger, attributes, fits):
    space.define("filtered", {"event": trigger})
    receipt = space.send_event(event(**attributes))
    assert receipt["started"] == (["activity-filtered:e1"] if fits else []), receipt
    assert receipt["duplicates"] == receipt["conflicts"] == []


def test_an_event_starts_all_who_wait_for_it_in_its_namespace_only(space, shared_server, fresh):
    stranger = Caller(shared_server, namespace=fresh("events"))
    for id in ("a", "b"):
        space.define(id, {"event": {"type": "order.paid"}})
    space.define("off", {"event": {"type": "order.paid"}}, enabled=False)
    stranger.define("c", {"event": {"type": "order.paid"}})
    assert sorted(space.send_event(event())["started"]) == ["activity-a:e1", "activity-b:e1"]
    assert stranger.send_event(event())["started"] == ["activity-c:e1"]


def test_an_event_without_a_matching_activity_is_acknowledged(space):
    assert space.send_event(event("lost")) == {
        "id": "lost", "id_assigned": False, "started": [], "duplicates": [], "conflicts": []
    }


def test_a_paused_activity_skips_and_says_so(space):
    space.define("paused", {"event": {}})
    space.http.post("/v1/activities/paused/pause")
    assert space.send_event(event())["started"] == []
    (run,) = space.activity_runs("paused")
    assert (run["event_id"], run["disposition"], run["workflow_id"]) == ("e1", "skipped", None)
    assert "pause" in run["why"]


# ---- repeated events


def test_the_same_id_with_other_content_is_a_conflict_and_starts_nothing(space):
    space.define("ship", {"event": {"type": "order.paid"}})
    assert space.send_event(event(data={"order": 1}))["started"] == ["activity-ship:e1"]
    changes = ({"data": {"order": 2}}, {"data": None}, {"source": "/web"}, {"subject": "s"})
    for change in changes:
        other = event(**{"data": {"order": 1}, **change})
        answer = space.http.post("/v1/events", other, headers={"Content-Type": STRUCTURED})
        assert (answer.status, answer.json["error"]) == (409, "IdempotencyConflict"), answer
        (receipt,) = answer.json["events"]
        assert (receipt["started"], receipt["duplicates"], receipt["conflicts"]) == ([], [], ["activity-ship:e1"])
        (in_batch,) = space.send_events([other])
        assert in_batch["conflicts"] == ["activity-ship:e1"]
    assert space.workflow("activity-ship:e1")["input"]["event"]["data"] == {"order": 1}
    assert len(stored_workflows(space, "activity-ship:")) == len(space.activity_runs("ship")) == 1


def test_an_event_that_started_something_is_no_conflict_for_its_sender(space):
    space.define("first", {"event": {"type": "order.paid"}})
    space.send_event(event(data={"order": 1}))
    space.define("second", {"event": {"type": "order.paid"}})
    receipt = space.send_event(event(data={"order": 2}))
    assert (receipt["started"], receipt["conflicts"]) == (["activity-second:e1"], ["activity-first:e1"])


@pytest.mark.parametrize("start", [{"workflow": {"type": "w", "input": {"n": 2}}}, {"tasks": [{"type": "t"}]}])
def test_the_same_event_is_the_same_whatever_became_of_the_activity(space, start):
    space.define("ship", {"event": {"type": "order.paid"}}, workflow={"type": "w", "input": {"n": 1}})
    paid = event(data={"order": 1}, time="2026-03-01T09:00:00Z", traceparent="00-1")
    assert space.send_event(paid)["started"] == ["activity-ship:e1"]
    space.define("ship", {"event": {"type": "order.paid"}}, **start)
    assert space.send_event(paid)["duplicates"] == ["activity-ship:e1"]
    for change in (
        {"time": None},
        {"time": "2026-03-01T09:00:01Z"},
        {"traceparent": "00-2", "tracestate": "a=b"},
        {"dataschema": "https://example.com/schema"},
        {"datacontenttype": "application/json; charset=utf-8"},
        {"anextensionoftwentyandmore": "x"},
    ):
        assert space.send_event({**paid, **change})["duplicates"] == ["activity-ship:e1"], change
    answer = space.http.post("/v1/events", {**paid, "data": {"order": 2}}, headers={"Content-Type": STRUCTURED})
    assert answer.status == 409, answer


def test_two_producers_with_the_same_ids_are_kept_apart_by_source_and_id(space):
    space.define("ship", {"event": {"type": "order.paid", "dedupe_by": "source_and_id"}})
    assert space.activity("ship")["trigger"]["event"]["dedupe_by"] == "source_and_id"
    assert space.send_event(event(source="/shop"))["started"] == ["activity-ship:/shop:e1"]
    assert space.send_event(event(source="https://web"))["started"] == ["activity-ship:https://web:e1"]
    assert space.send_event(event(source="/shop", time="2026-03-01T09:00:00Z"))["duplicates"] == ["activity-ship:/shop:e1"]
    told = {(run["event_source"], run["event_id"], run["workflow_id"]) for run in space.activity_runs("ship")}
    assert told == {("/shop", "e1", "activity-ship:/shop:e1"), ("https://web", "e1", "activity-ship:https://web:e1")}
    assert space.workflow("activity-ship:https://web:e1")["input"]["event"]["source"] == "https://web"
    far = event(source="https://" + "x" * 300)
    answer = space.http.post("/v1/events", far, headers={"Content-Type": STRUCTURED})
    assert (answer.status, answer.json["pointer"]) == (400, "/source") and "255" in answer.json["message"], answer


def test_an_event_without_an_id_is_given_one_and_the_answer_says_so(space):
    space.define("any", {"event": {}})
    first, second = space.send_event(event(id=None)), space.send_event(event(id=None))
    assert first["id_assigned"] and second["id_assigned"] and first["id"] != second["id"]
    assert first["started"] == [f"activity-any:{first['id']}"]
    assert space.workflow(first["started"][0])["input"]["event"]["id"] == first["id"]
    again = space.send_event(event(id=first["id"]))
    assert (again["id_assigned"], again["duplicates"]) == (False, first["started"])


def test_the_first_of_two_equal_events_in_a_batch_starts_the_second_does_not(space):
    space.define("any", {"event": {}})
    receipts = space.send_events([event("a"), event("b"), event("a"), event("b", data=1)])
    assert [receipt["id"] for receipt in receipts] == ["a", "b", "a", "b"]
    assert [bool(receipt["started"]) for receipt in receipts] == [True, True, False, False]
    assert receipts[2]["duplicates"] == ["activity-any:a"] and receipts[3]["conflicts"] == ["activity-any:b"]


def flood(servers, count, seed):
    """Sends each event three times, in random order, over all servers, many at once. Returns their outcomes."""
    random.seed(seed)
    callers = [Caller(server) for server in servers]
    callers[0].define("flood", {"event": {"type": "flooded"}})
    deliveries = [event(f"event-{n}", type="flooded", data={"n": n}) for n in range(count) for _ in range(3)]
    random.shuffle(deliveries)
    batches = [deliveries[start : start + 100] for start in range(0, len(deliveries), 100)]
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda n: callers[n % len(callers)].send_events(batches[n]), range(len(batches)))
        receipts = [receipt for answer in answers for receipt in answer]
    started = [id for receipt in receipts for id in receipt["started"]]
    assert len(receipts) == 3 * count
    assert sorted(started) == sorted(f"activity-flood:event-{n}" for n in range(count))
    assert sum(len(receipt["duplicates"]) for receipt in receipts) == 2 * count
    assert sum(len(receipt["conflicts"]) for receipt in receipts) == 0
    assert sorted(stored_workflows(callers[-1], "activity-flood:")) == sorted(started)
    ledger = callers[-1].activity_runs("flood")
    assert sorted(run["event_id"] for run in ledger) == sorted(f"event-{n}" for n in range(count))


def test_1000_events_three_times_each_over_two_servers_on_one_file(start_server):
    first = start_server("first")
    flood([first, start_server("second", store=first.store)], 1_000, seed=1)


def test_10000_events_three_times_each_over_two_servers_on_postgresql(start_server):
    postgres = Postgres().create().start()
    try:
        postgres.ask("CREATE DATABASE hapax")
        servers = [start_server(name, store=postgres.url()) for name in ("first", "second")]
        flood(servers, 10_000, seed=2)
        for server in servers:
            server.stop()
    finally:
        postgres.close()


# ---- the handshake of a webhook


def test_a_webhook_sender_gets_permission(start_server):
    server = start_server("closed", config='[tokens.shop]\ntoken = "a-long-enough-secret"\n')
    caller = Caller(server)
    asked = caller.http.request("OPTIONS", "/v1/events", headers={"WebHook-Request-Origin": "events.example.com"})
    assert asked.status == 200, asked
    assert asked.headers["webhook-allowed-origin"] == "events.example.com" and asked.headers["webhook-allowed-rate"] == "*"
    assert "POST" in asked.headers["allow"]
    assert caller.http.post("/v1/events", event(), headers={"Content-Type": STRUCTURED}).status == 401


# ---- the CloudEvents SDK for JavaScript


@pytest.fixture(scope="session")
def sdk():
    """Where the SDK is installed: beside its package.json, from the npm registry, again when its lock file changes."""
    home = pathlib.Path(__file__).resolve().parent / "cloudevents"
    installed, lock = home / "node_modules" / ".package-lock.json", home / "package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        npm = shutil.which("npm")
        assert npm, "there is no npm to install the CloudEvents SDK with; ./dev test installs Debian's"
        command = [npm, "ci", "--prefix", str(home), "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, f"npm could not install the CloudEvents SDK: {done.stdout}{done.stderr}"
        installed.touch()
    return home


@pytest.mark.parametrize("mode", ["binary", "structured", "batch"])
def test_the_javascript_sdk_delivers_in_each_of_its_modes(start_server, sdk, mode):
    server = start_server()
    caller = Caller(server)
    caller.define("from-js", {"event": {"type": "order.paid", "where": [{"pointer": "/country", "equals": "DE"}]}})
    events = [
        event(f"js-{n}", data={"n": n, "country": "DE"}, subject=f"order-{n}", time="2026-03-01T09:00:00.000Z", tenant="eu")
        for n in range(3)
    ]

    def send():
        url = f"http://127.0.0.1:{server.port}/v1/events"
        done = subprocess.run(
            [shutil.which("node"), str(sdk / "send.mjs"), url, mode],
            input=json.dumps(events), capture_output=True, text=True, timeout=60, check=False,
        )
        assert done.returncode == 0, done.stderr
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert all(answer["status"] == 200 for answer in answers), answers
        return [receipt for answer in answers for receipt in answer["body"]["events"]]

    workflows = [f"activity-from-js:js-{n}" for n in range(3)]
    assert [receipt["started"] for receipt in send()] == [[id] for id in workflows]
    assert [receipt["duplicates"] for receipt in send()] == [[id] for id in workflows]
    assert [caller.workflow(id)["input"]["event"] for id in workflows] == events
