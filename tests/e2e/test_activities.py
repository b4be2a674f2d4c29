"""Activities over HTTP: definition, firing by schedule and by hand, pause, backfill, and the run ledger."""

import datetime
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from caller import Caller, activity_path
from conftest import eventually
from server import Server
from workflow_worker import WorkflowWorker

DAILY = {"cron": {"expression": "0 9 * * *", "timezone": "Europe/Berlin"}}
EVERY_SECOND = {"cron": {"expression": "* * * * * *"}}
NEVER = {"cron": {"expression": "0 0 1 1 *"}}  # within the time of a test
ON_EVENT = {"event": {"type": "nobody.sends"}}
WORKFLOW = {"type": "w"}


def stored_workflows(caller, prefix):
    """The ids of all workflows, with repetition."""
    found, cursor = [], ""
    while cursor is not None:
        answer = caller.http.get("/v1/workflows?limit=1000" + (f"&cursor={cursor}" if cursor else "")).json
        found += [run["workflow_id"] for run in answer["executions"]]
        cursor = answer["next_cursor"]
    return [id for id in found if id.startswith(prefix)]


def instant(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


# ---- definitions


def test_put_creates_changes_and_shows_what_is_in_force(caller, fresh):
    id = fresh("a ü/?")
    settings = {"name": "Report", "workflow": {"type": "report", "input": {"n": [1]}, "queue": "q"}, "trigger": DAILY}
    created = caller.http.put(activity_path(id), settings)
    assert created.status == 201
    assert created.json["id"] == id and created.json["name"] == "Report" and created.json["enabled"] is True
    assert created.json["workflow"] == settings["workflow"]
    assert created.json["trigger"]["cron"]["timezone"] == "Europe/Berlin"
    assert created.json["trigger"]["cron"]["misfire_policy"] == "skip"
    assert (created.json["paused"], created.json["from_file"], created.json["last"]) == (False, False, [])
    assert len(created.json["next"]) == 5 and created.json["next"] == sorted(created.json["next"])
    again = caller.http.put(activity_path(id), settings)
    assert again.status == 200 and again.json["created_at"] == created.json["created_at"]
    changed = caller.http.put(activity_path(id), {**settings, "enabled": False})
    assert changed.status == 200 and changed.json["next"] == []
    assert caller.activity(id) == changed.json


def test_an_activity_without_a_name_is_called_by_its_id(caller, fresh):
    id = fresh("unnamed")
    assert caller.define(id, DAILY)["name"] == id


def test_the_next_firings_follow_the_time_zone(caller, fresh):
    for text in caller.define(fresh("zoned"), DAILY)["next"]:
        assert re.search(r"T0[78]:00:00\.000Z$", text), "9 o'clock in Berlin, in winter or in summer"


def test_delete_removes_it_and_keeps_its_runs(caller, fresh):
    id = fresh("gone")
    caller.define(id, NEVER)
    caller.trigger(id)
    answer = caller.http.delete(activity_path(id))
    assert (answer.status, answer.body) == (204, b"")
    assert caller.http.delete(activity_path(id)).json["error"] == "ActivityNotFound"
    assert caller.http.get(activity_path(id)).status == 404
    assert len(caller.activity_runs(id)) == 1


def test_the_list_is_paged_by_id_within_the_namespace(shared_server, fresh):
    namespace = fresh("space")
    mine, other = Caller(shared_server, namespace=namespace), Caller(shared_server, namespace=fresh("space"))
    ids = sorted(f"listed-{n}" for n in range(5))
    for id in ids:
        mine.define(id, NEVER)
    found, cursor = [], ""
    while cursor is not None:
        page = mine.http.get("/v1/activities?limit=2" + (f"&cursor={cursor}" if cursor else "")).json
        assert len(page["activities"]) <= 2
        found += [activity["id"] for activity in page["activities"]]
        cursor = page["next_cursor"]
    assert found == ids
    assert other.http.get("/v1/activities").json == {"activities": [], "next_cursor": None}
    assert other.http.get(activity_path(ids[0])).status == 404


CRON = {"expression": "@daily"}

REFUSED = [
    ([], ""),
    ({}, None),
    ({"workflow": WORKFLOW}, "/trigger"),
    ({"trigger": DAILY}, None),
    ({"workflow": WORKFLOW, "tasks": [{"type": "t"}], "trigger": DAILY}, "/tasks"),
    ({"workflow": {}, "trigger": DAILY}, "/workflow/type"),
    ({"workflow": {"type": "w", "speed": 1}, "trigger": DAILY}, "/workflow/speed"),
    ({"tasks": [], "trigger": DAILY}, "/tasks"),
    ({"tasks": [{"type": "t"}, {}], "trigger": DAILY}, "/tasks/1/type"),
    ({"workflow": WORKFLOW, "trigger": {}}, "/trigger"),
    ({"workflow": WORKFLOW, "trigger": {"cron": CRON, "event": {}}}, "/trigger/event"),
    ({"workflow": WORKFLOW, "trigger": {"cron": {}}}, "/trigger/cron/expression"),
    ({"workflow": WORKFLOW, "trigger": {"cron": {"expression": "61 * * * *"}}}, "/trigger/cron/expression"),
    ({"workflow": WORKFLOW, "trigger": {"cron": {"expression": "* * *"}}}, "/trigger/cron/expression"),
    ({"workflow": WORKFLOW, "trigger": {"cron": {**CRON, "timezone": "Europe/Bonn"}}}, "/trigger/cron/timezone"),
    ({"workflow": WORKFLOW, "trigger": {"cron": {**CRON, "misfire_policy": "later"}}}, "/trigger/cron/misfire_policy"),
    ({"workflow": WORKFLOW, "trigger": {"cron": {**CRON, "catchup_limit": 0}}}, "/trigger/cron/catchup_limit"),
    ({"workflow": WORKFLOW, "trigger": {"cron": {**CRON, "misfire_grace": 60}}}, "/trigger/cron/misfire_grace"),
    ({"workflow": WORKFLOW, "trigger": {"cron": {**CRON, "overlap": "maybe"}}}, "/trigger/cron/overlap"),
    ({"workflow": WORKFLOW, "trigger": {"cron": {**CRON, "jitter": "x"}}}, "/trigger/cron/jitter"),
    ({"workflow": WORKFLOW, "trigger": {"event": {"type": 1}}}, "/trigger/event/type"),
    ({"workflow": WORKFLOW, "trigger": {"event": {"where": [{"pointer": "x", "exists": True}]}}}, "/trigger/event/where/0/pointer"),
    ({"workflow": WORKFLOW, "trigger": {"event": {"where": [{"pointer": "/x"}]}}}, "/trigger/event/where/0"),
    ({"workflow": WORKFLOW, "trigger": DAILY, "enabled": "yes"}, "/enabled"),
    ({"workflow": WORKFLOW, "trigger": DAILY, "colour": "red"}, "/colour"),
    ({"workflow": WORKFLOW, "trigger": DAILY, "dedupe_key_strategy": "sometimes"}, "/dedupe_key_strategy"),
    ({"workflow": WORKFLOW, "trigger": ON_EVENT, "dedupe_key_strategy": "per_event"}, "/dedupe_key_strategy"),
    ({"workflow": WORKFLOW, "trigger": ON_EVENT, "dedupe_key_strategy": "skip"}, "/dedupe_key_strategy"),
    ({"workflow": WORKFLOW, "trigger": {"event": {"dedupe_by": "source"}}}, "/trigger/event/dedupe_by"),
    ({"workflow": WORKFLOW, "trigger": {"cron": {**CRON, "dedupe_by": "id"}}}, "/trigger/cron/dedupe_by"),
]


@pytest.mark.parametrize("body, pointer", REFUSED)
def test_a_bad_definition_is_refused_at_its_place(caller, body, pointer):
    answer = caller.http.put(activity_path("refused"), body)
    assert (answer.status, answer.json["error"]) == (400, "InvalidRequest"), answer
    assert pointer is None or answer.json["pointer"] == pointer, answer
    assert caller.http.get(activity_path("refused")).status == 404


@pytest.mark.parametrize("policy", ["skip", "catchup", "compress"])
def test_a_dedupe_key_strategy_equals_the_misfire_policy_and_is_kept(caller, fresh, policy):
    body = {"workflow": WORKFLOW, "trigger": {"cron": {**CRON, "misfire_policy": policy}}}
    for strategy in ("skip", "catchup", "compress"):
        id = fresh("agrees")
        answer = caller.http.put(activity_path(id), {**body, "dedupe_key_strategy": strategy})
        if strategy == policy:
            assert answer.status == 201 and answer.json["dedupe_key_strategy"] == strategy, answer
            assert caller.activity(id)["dedupe_key_strategy"] == strategy
        else:
            assert (answer.status, answer.json["pointer"]) == (400, "/dedupe_key_strategy"), answer
            assert policy in answer.json["message"] and strategy in answer.json["message"]
    alone = caller.define(fresh("alone"), DAILY, dedupe_key_strategy=policy)
    assert alone["dedupe_key_strategy"] == alone["trigger"]["cron"]["misfire_policy"] == policy
    assert "dedupe_key_strategy" not in caller.define(fresh("without"), DAILY)


@pytest.mark.parametrize("id", ["x" * 129, "a:b", "a%0Ab"])
def test_an_id_that_cannot_be_one_is_refused(caller, id):
    for method, part in (("PUT", ""), ("GET", ""), ("GET", "/runs"), ("POST", "/trigger"), ("POST", "/pause"), ("DELETE", "")):
        body = {"workflow": WORKFLOW, "trigger": DAILY} if method == "PUT" else {}
        answer = caller.http.request(method, f"/v1/activities/{id}{part}", body)
        assert (answer.status, answer.json["parameter"]) == (400, "id"), (method, part, answer)


def test_what_is_unknown_is_404_everywhere(caller):
    window = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}
    for method, part, body in (
        ("GET", "", {}), ("GET", "/runs", {}), ("DELETE", "", {}), ("POST", "/trigger", {}), ("POST", "/backfill", window),
        ("POST", "/pause", {}), ("POST", "/unpause", {}),
    ):
        answer = caller.http.request(method, f"/v1/activities/unknown{part}", body)
        assert (answer.status, answer.json["error"]) == (404, "ActivityNotFound"), (method, part, answer)


def test_definitions_survive_a_restart(start_server):
    server = start_server()
    caller = Caller(server)
    before = caller.define("kept", DAILY, name="Kept")
    server.restart()
    after = caller.activity("kept")
    assert {**after, "next": None} == {**before, "next": None}


# ---- by hand


def test_a_trigger_starts_the_workflow_with_its_input(caller, fresh):
    id, queue = fresh("by-hand"), fresh("queue")
    caller.define(id, NEVER, workflow={"type": "w", "input": {"region": "eu"}, "queue": queue})
    answer = caller.trigger(id)
    assert answer.status == 201 and answer.json["created"] and not answer.json["idempotency_replayed"]
    workflow_id = answer.json["workflow_id"]
    assert re.fullmatch(re.escape(f"activity-{id}:trigger-") + "[0-9a-f-]{36}", workflow_id)

    def shout(ctx, input):
        return (yield ctx.task("shout", input["region"], queue=queue))

    worker = WorkflowWorker(caller.http, {"w": shout}, {"shout": lambda text, _: text.upper()}, queues=[queue])
    assert worker.until_closed(workflow_id)["result"] == "EU"
    (run,) = caller.activity_runs(id)
    assert (run["workflow_id"], run["disposition"], run["window"]) == (workflow_id, "ran", None)
    assert run["triggered_at"] and "scheduled_for" not in run and "event_id" not in run


def test_a_trigger_under_one_key_is_one_run_for_all_callers(caller, fresh):
    id = fresh("keyed")
    caller.define(id, NEVER)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: caller.trigger(id, "once"), range(64)))
    assert {answer.json["workflow_id"] for answer in answers} == {f"activity-{id}:trigger-once"}
    assert sorted(answer.status for answer in answers) == [200] * 63 + [201]
    assert all(answer.json["created"] != answer.json["idempotency_replayed"] for answer in answers)
    assert len(stored_workflows(caller, f"activity-{id}:")) == len(caller.activity_runs(id)) == 1


def test_a_list_of_tasks_runs_all_of_them_and_is_then_completed(caller, fresh):
    id, queue = fresh("listed"), fresh("queue")
    caller.define(id, NEVER, tasks=[{"type": "pick", "input": [n], "queue": queue} for n in range(3)])
    workflow_id = caller.trigger(id).json["workflow_id"]
    claims = []
    while len(claims) < 3:
        claims += caller.claim(queue, limit=3, wait="10s")
    run = caller.workflow(workflow_id)
    names = {claim["execution"]["name"] for claim in claims}
    assert names == {f"task-{run['id']}:pick:{index}" for index in (1, 2, 3)}
    assert sorted(claim["execution"]["input"][0] for claim in claims) == [0, 1, 2]
    for claim in claims:
        caller.finish(claim["lease"])
    assert caller.workflow_result(workflow_id, wait="10s").json["status"] == "completed"


def test_a_backfill_starts_what_is_missing_once(caller, fresh):
    id = fresh("filled")
    caller.define(id, {"cron": {"expression": "0 12 * * *"}})
    first = caller.backfill(id, "2026-03-01T00:00:00Z", "2026-03-03T12:00:00Z")
    assert first.status == 200
    days = [f"2026-03-0{day}" for day in (1, 2, 3)]
    assert [run["workflow_id"] for run in first.json["runs"]] == [f"activity-{id}:{day}T12:00:00+00:00" for day in days]
    assert [run["scheduled_for"] for run in first.json["runs"]] == [f"{day}T12:00:00.000Z" for day in days]
    assert {run["disposition"] for run in first.json["runs"]} == {"caught_up"}
    again = caller.backfill(id, "2026-03-02T00:00:00Z", "2026-03-04T12:00:00Z").json["runs"]
    assert [run["disposition"] for run in again] == ["duplicate", "duplicate", "caught_up"]
    assert len(stored_workflows(caller, f"activity-{id}:")) == 4
    ledger = caller.activity_runs(id)
    assert [run["scheduled_for"][:10] for run in ledger] == ["2026-03-04", *reversed(days)]
    assert {run["disposition"] for run in ledger} == {"caught_up"}


def test_a_backfill_over_a_compressed_run_is_a_duplicate_unless_it_is_forced(start_server):
    server = start_server()
    caller = Caller(server)
    cron = {"expression": "* * * * * *", "misfire_policy": "compress", "misfire_grace": "1s"}
    caller.define("tick", {"cron": cron})
    eventually(lambda: caller.activity_runs("tick"))
    server.stop()
    stopped = time.time()
    eventually(lambda: time.time() > stopped + 6)
    server.start()
    eventually(lambda: any(run["window"] for run in caller.activity_runs("tick")), deadline_s=20)
    caller.http.post(activity_path("tick", "pause"))
    (compressed,) = [run for run in caller.activity_runs("tick") if run["window"]]
    window = compressed["window"]

    def started():
        """The runs within the window; later firings may still be starting."""
        first, last = instant(window["from"]), instant(window["to"])
        ids = stored_workflows(caller, "activity-tick:")
        return {id for id in ids if first <= instant(id.partition(":")[2]) <= last}

    eventually(lambda: started() == {compressed["workflow_id"]})
    runs = caller.backfill("tick", window["from"], window["to"]).json["runs"]
    assert len(runs) == window["missed"] >= 2
    assert {run["disposition"] for run in runs} == {"duplicate"}
    assert {run["workflow_id"] for run in runs} == {compressed["workflow_id"]}
    assert all("compressed" in run["why"] for run in runs)
    assert started() == {compressed["workflow_id"]}

    forced = caller.backfill("tick", window["from"], window["to"], force=True).json["runs"]
    assert [run["disposition"] for run in forced] == ["caught_up"] * (len(runs) - 1) + ["duplicate"]
    eventually(lambda: started() == {run["workflow_id"] for run in forced})
    told = {run["scheduled_for"]: run for run in caller.activity_runs("tick")}
    assert all("by force" in told[run["scheduled_for"]]["why"] for run in forced[:-1])
    assert caller.backfill("tick", window["from"], window["to"], force=1).json["pointer"] == "/force"


def test_a_backfill_that_makes_no_sense_is_refused(caller, fresh):
    scheduled, on_event = fresh("scheduled"), fresh("on-event")
    caller.define(scheduled, EVERY_SECOND, enabled=False)
    caller.define(on_event, ON_EVENT)
    for id, start, end, pointer in (
        (scheduled, "2026-03-02T00:00:00Z", "2026-03-01T00:00:00Z", "/to"),
        (scheduled, "2026-03-02T00:00:00Z", "2999-03-01T00:00:00Z", "/to"),
        (scheduled, "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", "/to"),
        (scheduled, "yesterday", "2026-03-02T00:00:00Z", "/from"),
        (on_event, "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", None),
    ):
        answer = caller.backfill(id, start, end)
        assert (answer.status, answer.json["error"], answer.json.get("pointer")) == (400, "InvalidRequest", pointer), answer
    assert stored_workflows(caller, f"activity-{scheduled}:") == []


def test_the_ledger_is_paged_newest_first(caller, fresh):
    id = fresh("paged")
    caller.define(id, {"cron": {"expression": "0 * * * *"}})
    caller.backfill(id, "2026-03-01T00:00:00Z", "2026-03-01T09:00:00Z")
    found, cursor = [], ""
    while cursor is not None:
        page = caller.http.get(activity_path(id, "runs") + "?limit=3" + (f"&cursor={cursor}" if cursor else "")).json
        found += [run["scheduled_for"] for run in page["runs"]]
        cursor = page["next_cursor"]
    assert found == [f"2026-03-01T0{hour}:00:00.000Z" for hour in reversed(range(10))]
    answer = caller.http.get(activity_path(id, "runs") + "?cursor=nonsense")
    assert (answer.status, answer.json["parameter"]) == (400, "cursor")
    assert [run["scheduled_for"] for run in caller.activity(id)["last"]] == found[:5]


# ---- by the schedule


def test_every_second_is_one_workflow_with_two_servers_on_one_file(start_server):
    first = start_server("first")
    second = start_server("second", store=first.store)
    callers = [Caller(first), Caller(second)]
    callers[0].define("tick", EVERY_SECOND)
    eventually(lambda: len(callers[1].activity_runs("tick")) >= 4, deadline_s=20)
    callers[0].http.post(activity_path("tick", "pause"))

    def settled():
        """The ledger, once the current firings have fired."""
        rows = callers[0].activity_runs("tick")
        told = sorted(row["workflow_id"] for row in rows)
        return rows if sorted(stored_workflows(callers[1], "activity-tick:")) == told else None

    ledger = eventually(settled)
    ids = [run["workflow_id"] for run in ledger]
    assert all(re.fullmatch(r"activity-tick:20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", id) for id in ids)
    assert len(set(ids)) == len(ids)
    times = [instant(run["scheduled_for"]) for run in reversed(ledger)]
    assert all(later - earlier == 1 for earlier, later in zip(times, times[1:]))
    assert {run["disposition"] for run in ledger} == {"ran"}


def test_a_pause_fires_nothing_and_the_ledger_tells_what_passed(start_server):
    caller = Caller(start_server())
    caller.define("tick", EVERY_SECOND)
    eventually(lambda: caller.activity_runs("tick"))
    paused = caller.http.post(activity_path("tick", "pause"))
    assert paused.status == 200 and paused.json["paused"] and paused.json["next"] == []
    paused_at = instant(paused.json["paused_at"])
    eventually(lambda: time.time() > paused_at + 4)
    before = stored_workflows(caller, "activity-tick:")
    assert all(instant(id.partition(":")[2]) <= paused_at for id in before)
    unpaused = caller.http.post(activity_path("tick", "unpause")).json
    assert not unpaused["paused"] and len(unpaused["next"]) == 5
    eventually(lambda: len(stored_workflows(caller, "activity-tick:")) > len(before))
    caller.http.post(activity_path("tick", "pause"))
    skipped = [run for run in caller.activity_runs("tick") if run["disposition"] == "skipped"]
    assert len(skipped) >= 3
    assert all(run["workflow_id"] is None and "pause" in run["why"] for run in skipped)


def test_after_an_outage_each_policy_does_what_it_says_and_tells_all(start_server):
    server = start_server()
    caller = Caller(server)
    for policy in ("skip", "catchup", "compress"):
        cron = {"expression": "* * * * * *", "misfire_policy": policy, "catchup_limit": 3, "misfire_grace": "2s"}
        caller.define(policy, {"cron": cron})
    eventually(lambda: all(caller.activity_runs(policy) for policy in ("skip", "catchup", "compress")))
    server.stop()
    stopped = time.time()
    eventually(lambda: time.time() > stopped + 8)
    server.start()

    def told(disposition, policy):
        return [run for run in caller.activity_runs(policy) if run["disposition"] == disposition]

    eventually(lambda: told("skipped", "skip") and told("caught_up", "catchup") and told("compressed", "compress"))
    for policy in ("skip", "catchup", "compress"):
        caller.http.post(activity_path(policy, "pause"))
        times = [run["scheduled_for"] for run in reversed(caller.activity_runs(policy))]
        stamps = [instant(text) for text in times]
        assert all(later - earlier == 1 for earlier, later in zip(stamps, stamps[1:])), "a firing without a row"
        workflows = {run["workflow_id"] for run in caller.activity_runs(policy)} - {None}
        eventually(lambda: workflows == set(stored_workflows(caller, f"activity-{policy}:")))
    assert all(run["workflow_id"] is None for run in told("skipped", "skip"))
    assert len(told("caught_up", "catchup")) == 3 and len(told("skipped", "catchup")) >= 1
    compressed = told("compressed", "compress")
    (workflow_id,) = {run["workflow_id"] for run in compressed}
    window = compressed[0]["window"]
    assert window["missed"] == len(compressed) and window["to"] == compressed[0]["scheduled_for"]
    assert window["from"] == compressed[-1]["scheduled_for"]
    assert caller.workflow(workflow_id)["input"]["window"] == window


# ---- the configuration file

IN_FILE = """
[activities.fixed]
name = "From the file"
workflow = { type = "w", input = { region = "eu" } }
trigger = { cron = { expression = "@yearly", timezone = "Europe/Berlin" } }
"""


def test_what_the_file_has_wins_and_is_shown_as_such(start_server, tmp_path):
    server = start_server("configured", config=IN_FILE)
    caller = Caller(server)
    activity = caller.activity("fixed")
    assert activity["from_file"] and activity["name"] == "From the file" and activity["workflow"]["input"] == {"region": "eu"}
    body = {"workflow": WORKFLOW, "trigger": DAILY}
    for answer in (caller.http.put(activity_path("fixed"), body), caller.http.delete(activity_path("fixed"))):
        assert (answer.status, answer.json["error"]) == (409, "DecidedByFile"), answer
    assert caller.trigger("fixed").status == 201
    assert caller.http.put(activity_path("own"), body).json["from_file"] is False
    server.stop()
    without = start_server("without", store=server.store)
    assert [a["id"] for a in Caller(without).http.get("/v1/activities").json["activities"] if a["from_file"]] == []
    assert Caller(without).activity("own")["workflow"] == WORKFLOW


def test_a_bad_activity_in_the_file_names_its_line(tmp_path):
    config = '[activities.a]\nworkflow = { type = "w" }\ntrigger = { cron = { expression = "61 * * * *" } }\n'
    server = Server(tmp_path / "bad", config=config).launch()
    assert server.wait_exit() == 2
    assert "test.toml:3: [activities.a] trigger.cron.expression: " in server.log
