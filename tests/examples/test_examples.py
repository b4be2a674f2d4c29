"""Every example, unchanged, on each kind of store and on a server. Each exits with 0 only if it worked as described."""

import signal

import pytest

from conftest import EXAMPLES
from postgres import Postgres
from server import SLOWDOWN

STORES = ["memory:", "sqlite:", "postgres:", "http:"]


@pytest.fixture(scope="session")
def postgres():
    server = Postgres()
    try:
        yield server.create().start()
    finally:
        server.close()


@pytest.fixture
def url(request, tmp_path):
    kind = request.param
    if kind == "sqlite:":
        return f"sqlite:{tmp_path}/example.db"
    if kind == "postgres:":
        server = request.getfixturevalue("postgres")
        database = f"example_{abs(hash(request.node.name))}"
        server.ask(f"CREATE DATABASE {database}")
        return server.url(database=database)
    if kind == "http:":
        return f"http://127.0.0.1:{request.getfixturevalue('server').port}"
    return kind


@pytest.mark.parametrize("url", STORES, indirect=True)
@pytest.mark.parametrize("name", ["order_tasks", "worker_and_submitter", "errors_and_cancel", "batch", "order_workflow", "approval", "fan_out", "tour", "watching", "capi"])
def test_an_example_does_what_it_says(run_example, name, url):
    run_example(name, url)


@pytest.mark.parametrize("url", ["sqlite:", "postgres:", "http:"], indirect=True)
@pytest.mark.parametrize("name", ["order_tasks", "errors_and_cancel", "batch", "order_workflow", "approval", "fan_out", "tour", "watching", "capi"])
def test_an_example_that_is_run_again_finds_what_it_did(run_example, name, url):
    run_example(name, url)
    run_example(name, url)


@pytest.mark.parametrize("url", ["sqlite:", "http:"], indirect=True)
def test_an_order_is_charged_by_the_first_run_only(run_example, url):
    assert "charged 1 times" in run_example("order_tasks", url)
    assert "charged 0 times" in run_example("order_tasks", url)


@pytest.mark.parametrize("url", ["sqlite:", "http:"], indirect=True)
def test_worker_and_submitter_are_two_processes(run_example, start, url):
    worker = start(EXAMPLES / "example_worker_and_submitter", url, "work")
    run_example("worker_and_submitter", url, "submit")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20 * SLOWDOWN) == 0


def test_a_change_that_running_workflows_would_notice_is_found_before_the_deploy(run_example):
    printed = run_example("changing_code")
    assert "careless: NonDeterminism" in printed and "careful: it fits" in printed


def test_a_task_exists_only_if_the_callers_transaction_commits(run_example, tmp_path):
    run_example("own_transaction", f"sqlite:{tmp_path}/orders.db")


def test_effects_in_the_programs_own_database_happen_once(run_example, tmp_path):
    run_example("effects", f"sqlite:{tmp_path}/bookings.db")
