import itertools
import time

import pytest

from caller import Caller
from server import SLOWDOWN, Server


def eventually(condition, deadline_s=10, every_s=0.01):
    """Calls until the result is truthy and returns it: the one place where a test waits for a state."""
    end = time.monotonic() + deadline_s * SLOWDOWN
    while not (answer := condition()):
        assert time.monotonic() < end, f"not within {deadline_s} s: {condition}"
        time.sleep(every_s)
    return answer


@pytest.fixture
def start_server(tmp_path, request):
    """Starts servers and ends them with the test; shows their logs if it fails."""
    servers = request.node.stash.setdefault(SERVERS, [])

    def start(name="server", **options):
        server = Server(tmp_path / name, **options)
        servers.append(server)
        return server.start()

    yield start
    for server in servers:
        server.kill()


@pytest.fixture
def server(start_server):
    return start_server()


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory):
    """One server for the tests of a file, which use different names."""
    server = Server(tmp_path_factory.mktemp("shared")).start()
    yield server
    server.kill()


@pytest.fixture
def caller(shared_server):
    return Caller(shared_server)


_names = itertools.count(1)


@pytest.fixture
def fresh():
    """fresh("queue") is a name that no other test uses."""
    return lambda word: f"{word}-{next(_names)}"


SERVERS = pytest.StashKey()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if not report.failed:
        return
    servers = list(item.stash.get(SERVERS, []))
    if "shared_server" in getattr(item, "funcargs", {}):
        servers.append(item.funcargs["shared_server"])
    for server in servers:
        report.sections.append((f"log of the server in {server.directory.name}", server.log[-4000:]))
