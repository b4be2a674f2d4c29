"""Every client command, on a server and directly on a store: its output and its exit code."""

import fcntl
import http.server
import json
import os
import pathlib
import pty
import struct
import subprocess
import termios
import threading

import pytest

from command import FAILED, NOT_FOUND, OK, REFUSED, TASK_FAILED, UNAVAILABLE, USAGE, Command

UNKNOWN = "00000000-0000-7000-8000-000000000000"


@pytest.fixture(params=["store", "url"])
def command(request, tmp_path):
    if request.param == "store":
        command = Command(tmp_path, ["--store", f"sqlite:{tmp_path}/q.db"])
        command.ok("migrate")
        return command
    server = request.getfixturevalue("shared_server")
    namespace = f"n{tmp_path.name}"
    return Command(tmp_path, ["--url", f"http://127.0.0.1:{server.port}", "--namespace", namespace])


# ---- submit, get, list


def test_submitting_twice_creates_once(command):
    first = command.ok("submit", "greet", '"Ada"', "--key", "greet-ada")
    second = command.ok("submit", "greet", '"Ada"', "--key", "greet-ada")

    assert first.out.startswith("created 0") and first.out.endswith("in queue default\n")
    id = first.out.split()[1]
    assert second.out.startswith("already there since 20")
    assert f"{id} pending" in second.out
    listed = command.json("list")["executions"]
    assert [task["id"] for task in listed] == [id]


def test_the_receipt_is_the_apis(command):
    flags = ["--key", "k", "--queue", "payments", "--priority", "5"]
    receipt = command.json("submit", "charge", "-", *flags, input='{"order": 7}')

    assert receipt["created"] is True
    assert receipt["match"]["strategy"] == "caller_provided"
    task = receipt["execution"]
    assert (task["queue"], task["priority"], task["input"]) == ("payments", 5, {"order": 7})
    assert command.json("get", task["id"])["id"] == task["id"]


def test_every_option_of_a_submission_arrives(command):
    task = command.json(
        "submit", "t", "{}", "--delay", "1h", "--max-attempts", 7, "--timeout", "30s", "--deadline", "2h",
        "--concurrency-key", "c", "--identity", "contextual", "--identity-field", "/a", "--identity-field", "/b",
        "--scope", "mine", "--ttl", "1d", "--reuse", "reject", "--on-duplicate", "error", "--retry-initial", "2s",
        "--retry-factor", "3", "--retry-max", "9s", "--dry-run", code=USAGE,
    )
    assert task["error"] == "IdentityFieldMissing"
    receipt = command.json(
        "submit", "t", '{"a":1,"b":2}', "--delay", "1h", "--max-attempts", 7, "--timeout", "30s", "--deadline", "2h",
        "--concurrency-key", "c", "--identity", "contextual", "--identity-field", "/a", "--identity-field", "/b",
        "--scope", "mine", "--ttl", "1d", "--retry-initial", "2s", "--retry-factor", "3", "--retry-max", "9s",
    )
    task = receipt["execution"]
    assert (task["max_attempts"], task["timeout"], task["concurrency_key"]) == (7, "30s", "c")
    assert task["retry"] == {"initial": "2s", "factor": 3, "max": "9s"}
    assert receipt["match"]["scope"] == "mine"
    says = command.json("explain", "t", '{"a":1,"b":3}', "--identity", "strict", "--ttl", "1d")
    assert says["explanation"]["expires"].startswith("1d after it is created")


def test_a_conflict_is_refused_with_the_owners_id(command):
    id = command.json("submit", "t", "1", "--key", "k")["execution"]["id"]

    ended = command.run("submit", "t", "2", "--key", "k")
    assert ended.code == REFUSED and id in ended.err and ended.err.startswith("hapax: ") and ended.err.count("\n") == 1
    answer = command.json("submit", "t", "2", "--key", "k", code=REFUSED)
    assert answer["error"] == "IdempotencyConflict"
    answer = command.json("submit", "t", "1", "--key", "k", "--on-duplicate", "error", code=REFUSED)
    assert answer["error"] == "TaskAlreadyExists"


def test_a_dry_run_changes_nothing(command):
    assert command.ok("submit", "t", "--key", "k", "--dry-run").out == "would create a task in queue default\n"
    assert command.json("list")["executions"] == []


def test_waiting_for_a_result_that_comes_and_one_that_does_not(command):
    ended = command.run("submit", "t", "--wait", "10ms", "--key", "k")
    assert ended.code == FAILED and "still pending after 10ms" in ended.err

    worker = command.start("work", "--exec", 'read x; [ "$x" = null ] && echo 42 || exit 100', "--once")
    done = command.ok("submit", "t", "--wait", "30s", "--key", "k")
    assert done.out.splitlines()[-1].endswith("completed, result 42")
    assert worker.wait(20) == 0

    worker = command.start("work", "--exec", "echo no money >&2; exit 100", "--once")
    failed = command.run("submit", "t", "1", "--wait")
    assert failed.code == TASK_FAILED
    assert failed.out.splitlines()[-1] == "failed after 1 attempt: FinalError: exit code 100: no money"
    assert worker.wait(20) == 0
    assert command.json("submit", "t", "--key", "k", "--wait")["execution"]["result"] == 42


def test_get_tells_everything_for_people(command):
    id = command.json("submit", "charge", '{"order":7}', "--key", "k\x1b[2J")["execution"]["id"]

    shown = command.ok("get", id).out
    assert f"id       {id}\n" in shown and "status   pending\n" in shown and 'input    {"order":7}\n' in shown
    assert "\x1b" not in shown


def test_list_filters_and_pages(command):
    def submitted(i):
        return command.json("submit", "a" if i % 2 else "b", "--queue", f"q{i % 3}", "--key", f"k{i}")["execution"]["id"]

    ids = [submitted(i) for i in range(6)]

    def listed(*flags):
        return [task["id"] for task in command.json("list", *flags)["executions"]]

    assert listed() == ids[::-1]
    assert listed("--type", "a") == [ids[5], ids[3], ids[1]]
    assert listed("--queue", "q0") == [ids[3], ids[0]]
    assert listed("--key", "k4") == [ids[4]]
    assert listed("--status", "completed") == []
    page = command.json("list", "--limit", 4)
    assert page["next_cursor"] == ids[2]
    assert listed("--before", page["next_cursor"]) == [ids[1], ids[0]]
    table = command.ok("list").out.splitlines()
    assert table[0].split() == ["id", "type", "queue", "status", "attempt", "age", "key"]
    assert table[1].split()[:4] == [ids[5], "a", "q2", "pending"]


# ---- cancel, retry


def test_cancel_and_retry_are_done_once_per_request_key(command):
    id = command.json("submit", "t")["execution"]["id"]

    first = command.json("cancel", id, "--request-key", "r")
    again = command.json("cancel", id, "--request-key", "r")
    assert (first["status"], first["changed"], first["idempotency_replayed"]) == ("cancelled", True, False)
    assert again == {**first, "idempotency_replayed": True}
    assert command.json("retry", id, "--request-key", "r", code=REFUSED)["error"] == "IdempotencyConflict"

    retried = command.ok("retry", id)
    assert retried.out == f"{id} is pending\n"
    key = retried.err.removeprefix("request key ").strip()
    assert "done before" in command.ok("retry", id, "--request-key", key).out
    assert command.run("retry", id).code == REFUSED
    assert command.run("cancel", UNKNOWN).code == NOT_FOUND


# ---- explain, release


def test_explain_says_what_and_why(command):
    says = command.json("explain", "charge", "1", "--key", "k")
    assert says["outcome"] == "create"
    assert "because the submission has a key" in says["explanation"]["identity"]

    id = command.json("submit", "charge", "1", "--key", "k")["execution"]["id"]
    says = command.json("explain", "charge", "1", "--key", "k")
    assert says["outcome"] == "duplicate" and id in says["explanation"]["owner"]
    assert says["explanation"]["hash"] == says["answer"]["match"]["identity_hash"]

    says = command.json("explain", "charge", "2", "--key", "k", code=REFUSED)
    assert says["outcome"] == "conflict"
    assert says["explanation"]["input"].count("sha256:") == 2

    command.ok("cancel", id)
    says = command.json("explain", "charge", "2", "--key", "k")
    assert says["outcome"] == "create" and "superseded" in says["explanation"]["reuse"]

    command.ok("types", "set", "strictly", "identity=strict")
    assert "as 'strictly' is declared by its settings" in command.ok("explain", "strictly", "1").out
    assert "every time" in command.ok("explain", "anything").out
    assert len(command.json("list")["executions"]) == 1


def test_release_frees_the_key(command):
    first = command.json("submit", "t", "1", "--key", "k")["execution"]["id"]

    ended = command.ok("release", "--type", "t", "--key", "k")
    assert first in ended.err and ended.out.startswith("released sha256:")
    receipt = command.json("submit", "t", "1", "--key", "k")
    assert receipt["created"] and receipt["execution"]["id"] != first
    assert command.json("release", "--hash", receipt["match"]["identity_hash"])["released"] is True
    assert command.json("release", "--hash", receipt["match"]["identity_hash"], code=NOT_FOUND)["released"] is False
    assert command.run("release", "--type", "t", "--key", "k").code == NOT_FOUND


# ---- queues, types


def test_queues_are_listed_shown_set_and_paused(command):
    command.ok("submit", "t", "--queue", "mail")
    queue = command.json("queues", "set", "mail", "retention=1d", "max_running=2")
    assert queue["settings"] == {"retention": "1d", "max_running": 2}
    queue = command.json("queues", "set", "mail", "max_running=", "rate_limit=5/min")
    assert queue["settings"] == {"retention": "1d", "rate_limit": "5/min"}
    assert command.json("queues", "pause", "mail")["settings"]["paused"] is True
    assert command.json("queues", "unpause", "mail")["settings"]["paused"] is False
    (queue,) = command.json("queues")["queues"]
    assert (queue["name"], queue["pending"]) == ("mail", 1)
    assert command.ok("queues", "list").out.splitlines()[1].startswith("mail")
    assert "rate_limit=5/min" in command.ok("queues", "show", "mail").out
    assert command.run("queues", "show", "nobody").code == NOT_FOUND


def test_types_are_listed_shown_and_set(command):
    words = ["queue=payments", "identity=contextual", "identity_fields=/a,/b", "retry.initial=5s"]
    assert command.json("types", "set", "charge", *words)["settings"] == {
        "queue": "payments",
        "identity": "contextual",
        "identity_fields": ["/a", "/b"],
        "retry": {"initial": "5s"},
    }
    assert [view["name"] for view in command.json("types")["types"]] == ["charge"]
    assert "payments" in command.ok("types", "show", "charge").out
    assert command.json("submit", "charge", '{"a":1,"b":2}')["execution"]["queue"] == "payments"
    assert command.run("types", "show", "other").code == NOT_FOUND


def test_setting_a_type_tunes_it_and_shows_what_decides_its_identity(command):
    type = command.json("types", "set", "tick", "max_attempts=7", "timeout=5s")
    assert type["declared"] is False
    assert type["identity"] == {"strategy": "always_unique", "from": "undeclared", "steps": "always_unique"}
    assert command.json("submit", "tick", "1")["created"] and command.json("submit", "tick", "1")["created"]
    assert command.json("types", "set", "tick", "timeout=")["settings"] == {"max_attempts": 7}
    assert "it is not declared" in command.ok("types", "show", "tick").out
    assert command.ok("list").out.count("0/7") == 2

    type = command.json("types", "set", "tick", "identity=strict")
    assert type["identity"] == {"strategy": "strict", "from": "api", "steps": "strict"}
    assert type["settings"] == {"identity": "strict", "max_attempts": 7}
    assert command.json("submit", "tick", "1")["created"]
    assert not command.json("submit", "tick", "1")["created"]
    assert command.run("types", "set", "tick", "max_attempts=0").code == USAGE


# ---- top, bench, doctor


def test_top_prints_one_frame_into_a_pipe(command):
    command.ok("submit", "t", "--queue", "mail")
    command.ok("submit", "bad", "--queue", "broken")
    command.ok("work", "--exec", "echo it broke >&2; exit 100", "--queue", "broken", "--once")

    frame = command.ok("top", "--once").out
    assert "1 pending, 0 running" in frame and "mail" in frame
    assert "FinalError: exit code 100: it broke" in frame
    assert "\x1b" not in frame
    assert [task["type"] for task in command.json("top", "--once")["failures"]] == ["bad"]


def rest_of(leader):
    """Everything written to the terminal until its last process ends."""
    seen = b""
    while True:
        try:
            piece = os.read(leader, 4096)
        except OSError:
            return seen
        if not piece:
            return seen
        seen += piece


def test_top_gives_the_terminal_back(command):
    command.ok("submit", "t", "--queue", "mail")
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        command.line("top", "--every", "100ms"),
        env={**command.environment, "TERM": "xterm"},
        cwd=command.directory, stdin=follower, stdout=follower, stderr=follower, start_new_session=True,
    )
    os.close(follower)
    seen = b""
    while b"mail" not in seen:
        seen += os.read(leader, 4096)
    os.write(leader, b"q")
    seen += rest_of(leader)
    assert process.wait(20) == 0
    os.close(leader)
    assert b"\x1b[?1049h" in seen and seen.rstrip().endswith(b"\x1b[?25h\x1b[?1049l")


def test_bench_measures_and_leaves_nothing(command):
    figures = command.json("bench", "--tasks", 200, "--in-flight", 8)["figures"]

    assert [figure["what"] for figure in figures] == ["keyed submit", "duplicate submit", "claim and finish"]
    assert all(figure["count"] == 200 and figure["per_second"] > 0 for figure in figures)
    assert command.json("list")["executions"] == []
    assert command.ok("bench", "--tasks", 20).out.count("\n") == 4


def test_doctor_finds_nothing_wrong(command):
    command.ok("list")
    report = command.json("doctor")

    assert report["ok"] is True
    about = {check["about"]: check["verdict"] for check in report["checks"]}
    assert about["configuration"] == "ok"
    assert about["store" if "--store" in command.where else "server"] == "ok"
    assert "ok    configuration" in command.ok("doctor").out


# ---- errors


def test_doctor_warns_of_a_store_that_others_can_read(tmp_path):
    command = Command(tmp_path, ["--store", f"sqlite:{tmp_path}/q.db"])
    command.ok("migrate")
    assert "permissions" not in command.ok("doctor").out
    (tmp_path / "q.db").chmod(0o644)
    assert f"chmod 600 {tmp_path}/q.db" in command.ok("doctor").out


def test_doctor_fails_on_what_is_broken(tmp_path):
    command = Command(tmp_path, [])
    (tmp_path / "hapax.toml").write_text("[server]\nstroe = 1\n")
    ended = command.run("doctor", "--store", f"sqlite:{tmp_path}/nowhere/q.db", "--config", tmp_path / "hapax.toml")
    assert ended.code == FAILED
    assert "fail  configuration" in ended.out and 'did you mean "store"?' in ended.out
    (tmp_path / "hapax.toml").unlink()
    (tmp_path / "foreign.db").write_text("this is no database at all" * 100)
    ended = command.run("doctor", "--store", f"sqlite:{tmp_path}/foreign.db")
    assert ended.code == FAILED and "fail  store" in ended.out
    ended = command.run("doctor", "--url", "http://127.0.0.1:1")
    assert ended.code == FAILED and "fail  server" in ended.out
    assert not (tmp_path / "hapax.db").exists()


@pytest.mark.parametrize(
    "arguments, code, says",
    [
        (["sumbit", "t"], USAGE, 'did you mean "submit"?'),
        (["submit", "t", "--prioritty", "1"], USAGE, 'did you mean "--priority"?'),
        (["submit", "t", "--priority", "high"], USAGE, "--priority"),
        (["submit"], USAGE, "TYPE is required"),
        (["submit", "t", "{"], USAGE, "INPUT is not JSON"),
        (["submit", "t", "--run-at", "x"], USAGE, "--run-at must be"),
        (["list", "--status", "runing"], USAGE, 'did you mean "running"?'),
        (["queues", "set", "q", "max_runing=1"], USAGE, 'did you mean "max_running"?'),
        (["types", "set", "t", "idntity=strict"], USAGE, 'did you mean "identity"?'),
        (["get", UNKNOWN], NOT_FOUND, "there is no task"),
        (["work", "--exec", "true", "--lease", "1ms"], USAGE, "--lease"),
        (["list", "--store", "mysql:x"], USAGE, "mysql"),
        (["list", "--url", "http://127.0.0.1:1"], UNAVAILABLE, "127.0.0.1:1"),
        (["work", "--exec", "true", "--url", "http://127.0.0.1:1"], UNAVAILABLE, "127.0.0.1:1"),
    ],
)
def test_errors_are_one_line_that_says_what_to_do(tmp_path, arguments, code, says):
    elsewhere = any(flag in arguments for flag in ("--url", "--store"))
    command = Command(tmp_path, [] if elsewhere else ["--store", f"sqlite:{tmp_path}/q.db"])
    if not elsewhere:
        command.ok("migrate")
    ended = command.run(*arguments)
    assert ended.code == code, ended
    assert ended.err.startswith("hapax: ") and says in ended.err.splitlines()[0], ended


def test_a_wrong_token_is_refused(start_server, tmp_path):
    server = start_server(config='[tokens.me]\ntoken = "secret"\n')
    command = Command(tmp_path, ["--url", f"http://127.0.0.1:{server.port}"])
    assert command.run("list").code == REFUSED
    assert command.run("work", "--exec", "true", "--once").code == REFUSED
    assert command.run("list", "--token", "secret").code == OK
    assert command.run("list", environment={"HAPAX_TOKEN": "secret"}).code == OK


def test_server_and_namespace_come_from_the_environment(shared_server, tmp_path):
    command = Command(tmp_path, [])
    environment = {"HAPAX_URL": f"http://127.0.0.1:{shared_server.port}", "HAPAX_NAMESPACE": "from-environment"}
    command.ok("submit", "t", environment=environment)
    (task,) = command.json("list", environment=environment)["executions"]
    assert task["namespace"] == "from-environment"


def test_a_store_is_used_with_its_configuration_and_beside_a_server(start_server, tmp_path):
    server = start_server()
    (tmp_path / "hapax.toml").write_text('[types.charge]\nqueue = "payments"\n')
    command = Command(tmp_path, ["--store", f"sqlite:{server.database}"])
    receipt = command.json("submit", "charge", "1")
    assert receipt["execution"]["queue"] == "payments"
    assert command.json("submit", "charge", "1")["created"] is False  # declared: strict
    assert server.client.get(f"/v1/tasks/{receipt['execution']['id']}").status == 200


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_valid(tmp_path, shell):
    script = Command(tmp_path, []).ok("completion", shell).out
    assert "--concurrency-key" in script or "-l concurrency-key" in script
    path = tmp_path / "script"
    path.write_text(script)
    if os.path.exists(f"/bin/{shell}"):
        assert subprocess.run([shell, "-n", path]).returncode == 0


def test_bash_completes_commands_flags_and_values(tmp_path):
    script = Command(tmp_path, []).ok("completion", "bash").out

    def completed(*words):
        quoted = " ".join(f"'{word}'" for word in words)
        code = f"{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _hapax; echo ${{COMPREPLY[@]}}"
        return subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert completed("hapax", "su") == ["submit"]
    assert completed("hapax", "submit", "t", "--reuse", "re") == ["reject", "replace"]
    assert completed("hapax", "submit", "--id") == ["--id", "--identity", "--identity-field"]
    assert completed("hapax", "queues", "un") == ["unpause"]
    assert "--url" in completed("hapax", "queues", "set", "--")
    assert completed("hapax", "list", "--status", "can") == ["cancelled"]


def on_terminal(command, *arguments, **environment):
    """The output of the command on its own terminal, both streams, and its exit code."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        command.line(*arguments), stdin=subprocess.DEVNULL, stdout=follower, stderr=follower, cwd=command.directory,
        env={**command.environment, "TERM": "xterm", **environment},
    )
    os.close(follower)
    seen = rest_of(leader)
    os.close(leader)
    return seen, process.wait(20)


def test_colours_are_for_terminals_without_no_color(command):
    command.ok("submit", "t")
    assert b"\x1b[1m" in on_terminal(command, "list")[0]
    assert b"\x1b" not in on_terminal(command, "list", NO_COLOR="1")[0]


# A payload that clears the screen, sets the title in C1 controls, and turns the text around.
HOSTILE = "\x1b[2J\x9b31m\u202e\u2066\x85"


@pytest.mark.parametrize("arguments", [["list"], ["get"], ["get", "--json"], ["list", "--json"]])
def test_a_payload_cannot_command_the_terminal(command, arguments):
    task = command.json("submit", "t" + "\u202e\u2066", json.dumps(HOSTILE), "--key", "k\u202ey")["execution"]
    if arguments[0] == "get":
        arguments = ["get", task["id"], *arguments[1:]]
    seen, code = on_terminal(command, *arguments, NO_COLOR="1")
    assert code == OK
    text = seen.decode()
    assert not [c for c in text if ord(c) < 32 and c not in "\r\n\t"], text
    assert not [c for c in text if 0x7F <= ord(c) < 0xA0 or c in "\u202e\u2066"], text
    if "--json" in arguments:
        shown = json.loads(text)
        assert (shown["executions"][0] if arguments[0] == "list" else shown)["input"] == HOSTILE


def test_an_error_cannot_command_the_terminal(command):
    seen, code = on_terminal(command, "get", "\x1b[2J\u202e\x9b31m")
    assert code != OK
    assert b"\x1b" not in seen and "\u202e" not in seen.decode() and "\x9b" not in seen.decode()


def test_a_hostile_server_cannot_command_the_terminal(tmp_path):
    body = json.dumps({"error": "InvalidRequest", "message": "\x1b]0;owned\x07\x9b2J\u202e no"}, ensure_ascii=False)
    body = body.replace("\\u001b", "\\u001B").encode()

    class Hostile(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(400)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Hostile) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = Command(tmp_path, ["--url", f"http://127.0.0.1:{server.server_port}"])
        seen, code = on_terminal(command, "get", UNKNOWN)
        ended = command.run("get", UNKNOWN)
        server.shutdown()
    assert code != OK and b"no" in seen
    for text in (seen.decode(), ended.err):
        assert not [c for c in text if ord(c) < 32 and c not in "\r\n\t"], text
        assert "\x9b" not in text and "\u202e" not in text, text


# ---- outbox


@pytest.mark.parametrize("dialect", ["postgres", "sqlite"])
def test_outbox_prints_the_table_that_the_python_sdk_has(tmp_path, dialect):
    source = (pathlib.Path(__file__).parents[2] / "python/src/hapax/sql/tables.py").read_text()
    tables = {}
    exec(source, tables)

    assert Command(tmp_path, []).ok("outbox", "--sql", dialect).out == tables["OUTBOX"][dialect]


def test_outbox_needs_a_database(tmp_path):
    assert Command(tmp_path, []).run("outbox").code == USAGE
    assert Command(tmp_path, []).run("outbox", "--sql", "oracle").code == USAGE


# ---- effects


@pytest.mark.parametrize("dialect", ["postgres", "sqlite"])
def test_effects_prints_the_table_that_the_python_sdk_has(tmp_path, dialect):
    tables = {}
    source = pathlib.Path(__file__).parents[2] / "python/src/hapax/sql/tables.py"
    exec(source.read_text(), tables)

    assert Command(tmp_path, []).ok("effects", "--sql", dialect).out == tables["EFFECTS"][dialect]


def test_effects_needs_a_database(tmp_path):
    assert Command(tmp_path, []).run("effects").code == USAGE
    assert Command(tmp_path, []).run("effects", "--sql", "oracle").code == USAGE
