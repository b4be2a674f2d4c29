"""Two generations of a program share a queue, as in a deploy that never ends: see shared_queue.py."""

import os

import shared_queue

WORKER = [os.environ["HAPAX_GENERATION_WORKER"]]  # which has the workflow `order`
GENERATIONS = {"old": (WORKER, ("charge", "ship")), "new": (WORKER, ("charge", "fraud_check"))}


def test_nothing_fails_for_want_of_a_worker_that_knows_it(tmp_path):
    shared_queue.run(tmp_path, GENERATIONS, {"order": "charge fraud_check ship "})
