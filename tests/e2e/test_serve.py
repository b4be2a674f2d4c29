"""Starting, stopping and watching a server."""

import resource
import shlex
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from caller import Caller
from client import RawConnection, request_bytes
from conftest import eventually
from server import BINARY, SLOWDOWN, Server, clean_environment

# ---- configuration


@pytest.mark.parametrize(
    "config, line, words",
    [
        ('[server]\nlisten = "127.0.0.1:0"\nlissten = "x"\n', 3, ["lissten"]),
        ("[queues.payments]\nretention = 30\n", 2, ["retention"]),
        ('[queues.payments]\n\nrate_limit = "fast"\n', 3, ["rate_limit", "fast"]),
        ('[types.charge]\nidentity = "sometimes"\n', 2, ["identity", "sometimes"]),
        ('[identity]\nundeclared = "maybe"\n', 2, ["undeclared"]),
        ('[cleanup]\ninterval = "now and then"\n', 2, ["interval"]),
        ("[server\n", 1, []),
        ('[nonsense]\na = 1\n', 1, ["nonsense"]),
        ('[server]\nmax_body = "a lot"\n', 2, ["max_body"]),
        ('[tokens.shop]\ntoken = ""\n', 2, ["token"]),
    ],
)
def test_an_error_in_the_configuration_names_file_and_line_and_ends_with_2(tmp_path, config, line, words):
    server = Server(tmp_path / "s", config=config).launch()

    assert server.wait_exit() == 2
    assert f"test.toml:{line}" in server.log
    for word in words:
        assert word in server.log
    assert not server.database.exists()


def run(directory, *arguments, **environment):
    return subprocess.run(
        [str(BINARY), *arguments],
        cwd=directory,
        env={**clean_environment(directory), **environment},
        capture_output=True,
        text=True,
        timeout=20 * SLOWDOWN,
    )


def test_a_wrong_flag_variable_or_file_ends_with_2(tmp_path):
    assert "nowhere.toml" in refusal(run(tmp_path, "serve", "--config", "nowhere.toml"))
    assert "--colour" in refusal(run(tmp_path, "serve", "--colour", "red"))
    assert "HAPAX_LISTEN" in refusal(run(tmp_path, "serve", HAPAX_LISTEN="not an address"))
    assert "carrots" in refusal(run(tmp_path, "serve", "--store", "carrots:x"))
    assert "0.0.0.0" in refusal(run(tmp_path, "serve", "--listen", "0.0.0.0:0"))
    assert list(tmp_path.iterdir()) == []


def refusal(ended):
    assert ended.returncode == 2, ended
    return ended.stderr


def test_a_port_that_is_taken_is_named_and_ends_with_1(server, tmp_path):
    ended = run(tmp_path, "serve", "--listen", f"127.0.0.1:{server.port}", "--store", "memory:")

    assert ended.returncode == 1
    assert str(server.port) in ended.stderr


def test_what_the_file_names_wins_over_the_api_and_is_shown_as_such(start_server):
    caller = Caller(start_server(config='[queues.payments]\nmax_running = 3\n[types.charge]\nqueue = "payments"\n'))

    shown = caller.put_queue("payments", max_running=9, retention="2d")

    assert shown["settings"]["max_running"] == 3
    assert shown["settings"]["retention"] == "2d"
    assert "max_running" in shown["from_file"] and "retention" not in shown["from_file"]
    assert caller.create("charge")["queue"] == "payments"


def test_settings_put_over_the_api_outlive_a_restart(server):
    caller = Caller(server)
    caller.put_queue("q", max_running=2)
    caller.put_type("t", identity="strict", queue="q")
    server.restart()

    assert caller.http.get("/v1/queues/q").json["settings"]["max_running"] == 2
    assert caller.http.get("/v1/types/t").json["settings"]["identity"] == "strict"
    assert caller.create("t")["queue"] == "q"


def test_the_commands_that_the_server_suggests_work(start_server):
    server = start_server(arguments=["--hints"])
    eventually(lambda: server.read_output() and server.printed.count("curl ") >= 4)
    commands = [shlex.split(line[line.index("curl ") :]) for line in server.printed.splitlines() if "curl " in line]

    lease, statuses = "", []
    for command in commands:
        answer = as_curl(server, [word.replace("LEASE OF THE CLAIM", lease) for word in command])
        statuses.append(answer.status)
        if answer.status == 200 and answer.json.get("claims"):
            lease = answer.json["claims"][0]["lease"]

    assert statuses == [201, 200, 200, 200]


def as_curl(server, command):
    """The request that this curl command makes."""
    url = next(word for word in command if word.startswith("http://"))
    path = url.removeprefix(f"http://127.0.0.1:{server.port}")
    for option, media in (("--json", "application/json"), ("-d", "application/x-www-form-urlencoded")):
        if option in command:
            body = command[command.index(option) + 1].encode()
            return server.client.post(path, raw=body, headers={"Content-Type": media})
    return server.client.get(path)


def test_migrate_prepares_a_file_and_says_so_again(tmp_path):
    for _ in range(2):
        ended = run(tmp_path, "migrate", "--store", f"sqlite:{tmp_path}/m.db")
        assert ended.returncode == 0, ended
    assert (tmp_path / "m.db").exists()


def metric(server, name):
    return Caller(server).metric(name)


# ---- shutting down


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_ends_at_once(server, how):
    start = time.monotonic()

    assert server.stop(how) == 0
    assert time.monotonic() - start < 3 * SLOWDOWN


def test_a_shutdown_under_load_answers_what_was_accepted_and_loses_nothing(start_server):
    server = start_server()
    acknowledged, broken, lock = [], [], threading.Lock()

    def load(n):
        connection, mine, odd = RawConnection(server.port), [], []
        count = 0
        while True:
            count += 1
            try:
                connection.send(request_bytes("POST", "/v1/tasks", {"type": "t", "queue": "q", "input": [n, count]}))
                answer = connection.read_response()
            except ConnectionError:
                break
            if answer is None:
                break
            if answer.status == 201:
                mine.append(answer.json["execution"]["id"])
            elif answer.status != 503:
                odd.append(answer)
            if answer.headers.get("connection", "").lower() == "close":
                break
        with lock:
            acknowledged.extend(mine)
            broken.extend(odd)

    threads = [threading.Thread(target=load, args=(n,)) for n in range(16)]
    polls = [RawConnection(server.port) for _ in range(20)]
    for poll in polls:
        poll.send(request_bytes("POST", "/v1/claims", {"worker": "w", "queues": ["idle"], "wait": "30s"}))
    for thread in threads:
        thread.start()
    eventually(lambda: metric(server, "hapax_waiting_claims") == 20 and metric(server, "hapax_submitted_total") > 200)

    assert server.stop() == 0

    for thread in threads:
        thread.join(20)
    for poll in polls:
        answer = poll.read_response()
        assert answer.status == 200 and answer.json["claims"] == []
        poll.close()
    assert broken == []
    server.start()
    caller, kept, cursor = Caller(server), set(), None
    while True:
        page = caller.http.get("/v1/tasks?queue=q&limit=1000" + (f"&cursor={cursor}" if cursor else "")).json
        kept |= {execution["id"] for execution in page["executions"]}
        if (cursor := page["next_cursor"]) is None:
            break
    assert len(set(acknowledged)) == len(acknowledged) > 200
    # Every accepted request was answered: the store has nothing that no client was told of.
    assert set(acknowledged) == kept


def test_who_waits_for_a_result_is_answered_at_the_shutdown(server):
    task = Caller(server).create(queue="q")
    with RawConnection(server.port) as connection:
        connection.send(request_bytes("GET", f"/v1/tasks/{task['id']}/result?wait=30s"))
        eventually(lambda: metric(server, "hapax_waiting_results") == 1)
        assert server.stop() == 0
        assert connection.read_response().status == 202


# ---- watching


def test_health_and_ready_say_so(server):
    for path in ("/health", "/ready"):
        answer = server.client.get(path)
        assert answer.status == 200, answer
        assert answer.json["status"] == "ok" or answer.json["status"] == "ready"


def test_metrics_count_what_happened(server):
    caller = Caller(server)
    caller.create(queue="q", idempotency_key="k", input=1)
    caller.submit(queue="q", idempotency_key="k", input=1)
    caller.submit(queue="q", idempotency_key="k", input=2)
    for _ in range(3):
        caller.create(queue="q")
    claims = caller.claim("q", limit=3)
    caller.finish(claims[0]["lease"])
    caller.fail(claims[1]["lease"], retryable=False)
    caller.finish(claims[2]["lease"][:-4] + "zzzz")

    answer = server.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    lines = answer.body.decode().splitlines()
    assert all(line.startswith("#") or len(line.rsplit(" ", 1)) == 2 for line in lines)

    assert metric(server, "hapax_submitted_total") == 4
    assert metric(server, "hapax_deduplicated_total") == 1
    assert metric(server, "hapax_conflicts_total") == 1
    assert metric(server, "hapax_claimed_total") == 3
    assert metric(server, "hapax_completed_total") == 1
    assert metric(server, "hapax_failed_attempts_total") == 1
    assert metric(server, "hapax_leases_lost_total") == 1


def test_2000_waiting_workers_need_no_threads_and_little_memory(server):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 5000)), hard))
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (min(hard, max(soft, 5000)), hard))
    caller = Caller(server)
    caller.create(queue="warm")
    threads, memory_kb = server.status_field("Threads"), server.status_field("VmRSS")

    poll = request_bytes("POST", "/v1/claims", {"worker": "w", "queues": ["q"], "wait": "60s"})
    connections = [RawConnection(server.port) for _ in range(2000)]
    for connection in connections:
        connection.send(poll)
    eventually(lambda: metric(server, "hapax_waiting_claims") == 2000, deadline_s=20)

    assert server.status_field("Threads") == threads
    grown_kb = server.status_field("VmRSS") - memory_kb
    print(f"{threads} threads, {grown_kb / 2000:.1f} kB per waiting worker")
    assert grown_kb < 64_000 * SLOWDOWN
    # It still serves all of them, and hands each task to one.
    caller.batch(*[{"type": "t", "queue": "q"}] * 500)
    eventually(lambda: metric(server, "hapax_waiting_claims") == 1500)
    for connection in connections:
        connection.close()
    # A client that hung up no longer waits and gets nothing.
    eventually(lambda: metric(server, "hapax_waiting_claims") == 0)
    task = caller.create(queue="q")
    assert caller.claim_one("q")["execution"]["id"] == task["id"]


def test_a_task_is_not_given_to_a_worker_that_hung_up(server):
    caller = Caller(server)
    with RawConnection(server.port) as connection:
        connection.send(request_bytes("POST", "/v1/claims", {"worker": "w", "queues": ["q"], "wait": "30s"}))
        eventually(lambda: metric(server, "hapax_waiting_claims") == 1)
    eventually(lambda: metric(server, "hapax_waiting_claims") == 0)

    task = caller.create(queue="q")

    claim = caller.claim_one("q")
    assert (claim["execution"]["id"], claim["attempt"]) == (task["id"], 1)


def test_connections_are_kept_alive_and_many_work_at_once(server):
    def talk(n):
        caller = Caller(server)
        return [caller.submit(input=[n, i]).status for i in range(20)]

    with ThreadPoolExecutor(16) as pool:
        assert {status for statuses in pool.map(talk, range(16)) for status in statuses} == {201}
