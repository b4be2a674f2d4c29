"""examples/shop over HTTP: what it answers, and that an order is finished once however often it is killed."""

import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from client import Client
from server import SLOWDOWN, clean_environment

POINTS_AT_ONCE = 6
MOST_POINTS = 400
LAMPS = {"sku": "lamp", "quantity": 2}


class Shop:
    """The service on a file in `place`. With `kill`, it is killed at that commit."""

    def __init__(self, place):
        self.place = place
        self.process = None
        self.port = None
        self.client = Client(lambda: self.port, timeout=60 * SLOWDOWN)

    def start(self, program="HAPAX_SHOP", kill=None):
        environment = clean_environment(self.place)
        if kill:
            environment["HAPAX_KILL"] = kill
        command = [os.environ[program], f"{self.place}/shop.db", "0", f"{self.place}/partners.txt"]
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        opened = self.process.stdout.readline()  # empty if it was killed before it could say it
        if opened:
            self.port = int(opened.rsplit(":", 1)[1])
        return self

    def kill(self):
        self.process.kill()
        return self.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self):
        code = self.process.wait(60 * SLOWDOWN)
        self.process.stdout.close()
        self.client.close()
        return code

    def order(self, name="456"):
        return self.client.get(f"/orders/{name}").json

    def wait_until(self, state, name="456"):
        deadline = time.monotonic() + 60 * SLOWDOWN
        while (order := self.order(name))["state"] != state or order["workflow"] not in ("suspended", "completed", "failed", "cancelled"):
            assert time.monotonic() < deadline, order
            time.sleep(0.01)
        return order

    def tell(self, what, body, key, name="456"):
        return self.client.post(f"/orders/{name}/{what}", body, headers={"Idempotency-Key": key})

    def booked(self):
        lines = (self.place / "partners.txt").read_text().splitlines()
        assert len({line.split()[0] for line in lines}) == len(lines)
        return [line.split(" ", 1)[1] for line in lines]

    def stock(self):
        return {product["sku"]: product["stock"] for product in self.client.get("/products").json}


@pytest.fixture
def shop(tmp_path):
    shop = Shop(tmp_path).start()
    yield shop
    if shop.process.poll() is None:
        assert shop.stop() == 0


def test_an_order_is_placed_once_however_often_it_is_sent(shop):
    first = shop.client.put("/orders/456", LAMPS)
    again = shop.client.put("/orders/456", LAMPS)
    other = shop.client.put("/orders/456", {"sku": "desk"})

    assert (first.status, again.status, other.status) == (201, 200, 409)
    assert again.json == first.json == {"id": "456", "sku": "lamp", "quantity": 2, "cents": 9800, "note": "none"}


def test_bad_requests_change_nothing(shop):
    assert shop.client.put("/orders/1", {"sku": "boat"}).status == 422
    assert shop.client.put("/orders/1", {"sku": "lamp", "quantity": 0}).status == 400
    wrong = shop.client.put("/orders/1", {"sku": "lamp", "quantity": "two"})
    assert wrong.status == 400 and "/quantity" in wrong.json["message"]
    assert shop.client.get("/orders/1").status == 404
    assert shop.client.post("/orders/1/packed", {"by": "eve"}).status == 400
    assert shop.tell("packed", {"by": "eve"}, "click-1", "1").status == 404
    assert shop.client.get("/nowhere").status == 404


def test_an_order_that_waits_for_the_warehouse_survives_kill_9(shop):
    shop.client.put("/orders/456", LAMPS)
    shop.wait_until("paid")
    assert shop.kill() == -signal.SIGKILL

    shop.start()
    assert "waits for" in shop.client.get("/orders/456/why").json["sentences"][0]
    assert shop.tell("packed", {"by": "eve"}, "click-1").status == 202
    order = shop.wait_until("shipped")

    assert order["packed_by"] == "eve"
    assert shop.booked() == ["charge 456", "ship 456"]
    assert shop.stock()["lamp"] == 8


def test_a_cancelled_order_is_refunded(shop):
    shop.client.put("/orders/456", LAMPS)
    shop.wait_until("paid")
    shop.tell("cancel", {"reason": "changed my mind"}, "cancel-1")
    shop.tell("cancel", {"reason": "changed my mind"}, "cancel-1")
    shop.wait_until("given up")

    assert shop.booked() == ["charge 456", "refund 456"]
    assert shop.stock()["lamp"] == 10


def test_a_note_is_changed_until_the_order_is_packed(shop):
    shop.client.put("/orders/456", LAMPS)
    shop.wait_until("paid")
    changes = [shop.tell("note", {"note": "ring twice"}, key) for key in ("note-1", "note-1", "note-2")]
    shop.tell("packed", {"by": "eve"}, "click-1")
    shop.wait_until("shipped")

    assert [change.json["note"] for change in changes] == ["none", "none", "ring twice"]


def test_events_start_workflows_and_reach_them(shop):
    delivery = {"id": "evt-1", "source": "/supplier", "type": "goods.delivered", "data": {"sku": "lamp", "quantity": 5}}
    shop.client.put("/orders/456", LAMPS)
    shop.wait_until("paid")
    answers = [shop.client.post("/events", delivery) for _ in range(2)]
    dispute = {"id": "evt-2", "source": "/bank", "type": "payment.disputed", "data": {"order": "456", "reason": "not me"}}
    shop.client.post("/events", dispute)
    shop.wait_until("given up")

    assert [len(answer.json["started"]) for answer in answers] == [1, 0]
    assert shop.booked() == ["charge 456", "refund 456"]
    shop.client.put("/orders/457", {"sku": "lamp", "quantity": 15})  # all that there are, if the delivery counted once
    shop.wait_until("paid", "457")
    assert shop.stock()["lamp"] == 0


def finish_an_order(shop):
    """What a client does that loses its answers: it starts again from the front. Returns the stock afterwards."""
    while True:
        try:
            shop.client.put("/orders/456", LAMPS)
            shop.tell("packed", {"by": "eve"}, "click-1")
            shop.wait_until("shipped")
            return shop.stock()  # in here: the last commits come after the order shows as shipped
        except OSError:
            assert shop.wait() == -signal.SIGKILL
            shop.start()


def killed_at(tmp_path, kill):
    """Whether the service reached that commit. In any case the order is finished, once."""
    place = tmp_path / kill.replace(":", "-")
    place.mkdir()
    shop = Shop(place).start("HAPAX_SHOP_KILLED", kill)
    first = shop.process.pid
    try:
        if shop.port is None:
            assert shop.wait() == -signal.SIGKILL
            shop.start()
        stock = finish_an_order(shop)
        assert shop.booked() == ["charge 456", "ship 456"], kill
        assert stock["lamp"] == 8, kill
        return shop.process.pid != first
    finally:
        shop.kill()


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_order_is_finished_once_after_a_kill_at_every_commit(tmp_path, when):
    survived = 0
    with ThreadPoolExecutor(POINTS_AT_ONCE) as pool:
        for first in range(1, MOST_POINTS, POINTS_AT_ONCE):
            came = list(pool.map(lambda n: killed_at(tmp_path, f"{when}:{n}"), range(first, first + POINTS_AT_ONCE)))
            survived += sum(came)
            if not all(came):
                break
        else:
            pytest.fail(f"an order took more than {MOST_POINTS} commits")
    assert survived >= 8, "tables, the order with its start, and at least a commit for each step"
