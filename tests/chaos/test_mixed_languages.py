"""A C++ worker and one of Python's standard library alone share a queue: see shared_queue.py. Each has a workflow that
the other does not know, with steps of both."""

import os
import pathlib

import shared_queue

CPP = [os.environ["HAPAX_GENERATION_WORKER"]]  # which has the workflow `order`
PYTHON = ["/usr/bin/python3", "-B", str(pathlib.Path(__file__).with_name("python_worker.py"))]  # and this one `audit`
KINDS = {"cpp": (CPP, ("charge", "ship")), "python": (PYTHON, ("charge", "fraud_check"))}


def test_each_gets_only_what_it_knows(tmp_path):
    shared_queue.run(tmp_path, KINDS, {"order": "charge fraud_check ship ", "audit": "ship fraud_check "})
