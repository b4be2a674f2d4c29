"""Activities and events on the command line, on a server and directly on its store."""

import json
import re

import pytest

from command import NOT_FOUND, REFUSED, USAGE, Command


@pytest.fixture(params=["url", "store"])
def command(request, shared_server, tmp_path):
    where = {"url": ["--url", f"http://127.0.0.1:{shared_server.port}"], "store": ["--store", shared_server.store]}
    return Command(tmp_path, where[request.param])


def put_yearly(command, id, *flags):
    return command.ok("activities", "put", id, "--workflow", "report", "--cron", "@yearly", *flags)


def test_an_activity_from_put_to_remove(command, fresh):
    id = fresh("report ü")
    shown = put_yearly(command, id, "--timezone", "Europe/Berlin", "--input", '{"n": 1}', "--misfire-policy", "catchup").out
    assert f"activity  {id}\n" in shown and "@yearly Europe/Berlin" in shown and "catchup" in shown
    assert len(re.findall(r"20\d\d-12-31T23:00:00\.000Z  in \d+d", shown)) == 5
    assert command.ok("activities", id).out == command.ok("activities", "show", id).out
    as_json = command.json("activities", "show", id)
    assert (as_json["workflow"], as_json["trigger"]["cron"]["misfire_policy"]) == ({"type": "report", "input": {"n": 1}}, "catchup")
    command.ok("trigger", id)
    row = next(line for line in command.ok("activities", "--limit", "1000").out.splitlines() if line.startswith(id + " "))
    assert re.search(r"in \d+d +ran +workflow report +@yearly Europe/Berlin", row), row
    assert "paused" in command.ok("activities", "pause", id).out
    assert command.json("activities", "show", id)["paused"] is True
    assert command.json("activities", "unpause", id)["paused"] is False
    assert command.ok("activities", "remove", id).out.startswith(f"removed {id}")
    assert command.run("activities", "remove", id).code == NOT_FOUND
    assert command.run("activities", id).code == NOT_FOUND


def test_a_definition_may_come_from_a_file_or_from_standard_input(command, fresh, tmp_path):
    definition = {"tasks": [{"type": "pick"}, {"type": "pack"}], "trigger": {"event": {"type": "paid", "source": "/shop"}}}
    (tmp_path / "ship.json").write_text(json.dumps(definition))
    for source, input in (("ship.json", None), ("-", json.dumps(definition))):
        id = fresh("ship")
        shown = command.ok("activities", "put", id, "--file", source, input=input).out
        assert "2 tasks" in shown and "event paid from /shop" in shown
        assert command.json("activities", "show", id)["tasks"] == definition["tasks"]


def test_a_definition_that_is_wrong_names_the_flag(command, tmp_path):
    (tmp_path / "bad.json").write_text('{"workflow": {"type": "w"}, "trigger": {"cron": {"expression": "x"}}}')
    for arguments, told in (
        (["a"], "--workflow"),
        (["a", "--workflow", "w"], "--cron"),
        (["a", "--workflow", "w", "--cron", "61 * * * *"], "--cron "),
        (["a", "--workflow", "w", "--cron", "@daily", "--timezone", "Europe/Bonn"], "--timezone "),
        (["a", "--workflow", "w", "--cron", "@daily", "--overlap", "maybe"], "--overlap "),
        (["a", "--workflow", "w", "--cron", "@daily", "--event-type", "t"], "exclude each other"),
        (["a", "--workflow", "w", "--cron", "@daily", "--input", "{"], "--input is not JSON"),
        (["a:b", "--workflow", "w", "--cron", "@daily"], "ID "),
        (["a", "--file", "bad.json"], "/trigger/cron/expression"),
        (["a", "--file", "bad.json", "--cron", "@daily"], "--file replaces the other flags"),
        (["a", "--file", "nowhere.json"], "cannot read nowhere.json"),
    ):
        ended = command.run("activities", "put", *arguments)
        assert ended.code == USAGE and told in ended.err, (arguments, ended)
    assert command.run("activities", "a").code == NOT_FOUND
    assert command.run("activities", "pause", "a", "b").code == USAGE


def test_trigger_once_per_key(command, fresh):
    id = fresh("by-hand")
    put_yearly(command, id)
    assert command.ok("trigger", id, "--key", "k").out == f"started activity-{id}:trigger-k\n"
    assert command.ok("trigger", id, "--key", "k").out == f"already started under this key: activity-{id}:trigger-k\n"
    answer = command.json("trigger", id)
    assert answer["created"] and not answer["idempotency_replayed"]
    assert command.run("trigger", "unknown").code == NOT_FOUND
    assert command.run("trigger", id, "--key", " ").code == USAGE


def test_backfill_and_runs_tell_what_became_of_every_firing(command, fresh):
    id = fresh("filled")
    command.ok("activities", "put", id, "--workflow", "w", "--cron", "0 12 * * *")
    window = ["--from", "2026-03-01T00:00:00Z", "--to", "2026-03-02T23:00:00Z"]
    assert command.ok("backfill", id, *window).out.count("caught_up") == 2
    assert [run["disposition"] for run in command.json("backfill", id, *window)["runs"]] == ["duplicate"] * 2
    forced = command.json("backfill", id, *window, "--force")["runs"]
    assert [run["disposition"] for run in forced] == ["duplicate"] * 2, "their runs are still open"
    lines = command.ok("runs", id).out.splitlines()
    assert lines[0].split() == ["fired", "became", "workflow", "why"] and len(lines) == 3
    assert lines[1].startswith(f"2026-03-02T12:00:00.000Z  caught_up  activity-{id}:2026-03-02T12:00:00+00:00")
    page = command.json("runs", id, "--limit", "1")
    assert page["runs"][0]["scheduled_for"] == "2026-03-02T12:00:00.000Z"
    rest = command.json("runs", id, "--limit", "1", "--after", page["next_cursor"])["runs"]
    assert rest[0]["scheduled_for"] == "2026-03-01T12:00:00.000Z"
    assert command.run("runs", "unknown").code == NOT_FOUND
    assert command.run("backfill", id, "--from", "yesterday", "--to", "2026-03-02T23:00:00Z").code == USAGE
    assert command.run("backfill", id, "--from", "2026-03-03T00:00:00Z", "--to", "2026-03-02T00:00:00Z").code == USAGE
    assert command.run("backfill", "unknown", *window).code == NOT_FOUND


def test_an_event_starts_what_waits_for_it_once(command, fresh):
    id, type = fresh("on-event"), fresh("paid")
    command.ok("activities", "put", id, "--workflow", "w", "--event-type", type, "--event-source", "/shop")
    send = ["event", type, '{"order": 1}', "--source", "/shop", "--id", "e1"]
    assert command.ok(*send).out == f"started activity-{id}:e1\n"
    assert command.ok(*send).out == f"already started activity-{id}:e1\n"
    conflict = command.run("event", type, '{"order": 2}', "--source", "/shop", "--id", "e1")
    assert conflict.code == REFUSED and f"activity-{id}:e1" in conflict.out
    assert command.ok("event", type, "-", "--id", "e2", input="[1]").out == "no activity matches it\n"
    unnamed = command.json("event", type, "--source", "/shop")["events"][0]
    assert unnamed["id_assigned"] and unnamed["started"] == [f"activity-{id}:{unnamed['id']}"]
    assert command.run("event", "", "--id", "e3").code == USAGE
    assert command.run("event", type, "{").code == USAGE


def test_what_the_file_has_is_refused(start_server, tmp_path):
    config = '[activities.fixed]\nworkflow = { type = "w" }\ntrigger = { cron = { expression = "@yearly" } }\n'
    server = start_server("configured", config=config)
    on_server = Command(tmp_path, ["--url", f"http://127.0.0.1:{server.port}"])
    on_store = Command(tmp_path, ["--store", server.store, "--config", str(server.directory / "test.toml")])
    for command in (on_server, on_store):
        assert "from the file  yes" in command.ok("activities", "fixed").out
        ended = command.run("activities", "put", "fixed", "--workflow", "w", "--cron", "@daily")
        assert ended.code == REFUSED and "file" in ended.err
        assert command.run("activities", "remove", "fixed").code == REFUSED
