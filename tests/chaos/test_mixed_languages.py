"""A C++ worker and one in Python share a queue: see shared_queue.py. Each has a workflow that the other does not know,
with steps of both. One Python worker is of the standard library alone, the other is the Python SDK."""

import os
import pathlib

import pytest

import shared_queue

CPP = [os.environ["HAPAX_GENERATION_WORKER"]]  # which has the workflow `order`


@pytest.mark.parametrize("worker", ["python_worker", "sdk_worker"])  # which have the workflow `audit`
def test_each_gets_only_what_it_knows(tmp_path, worker):
    program = ["/usr/bin/python3", "-B", str(pathlib.Path(__file__).with_name(f"{worker}.py"))]
    kinds = {"cpp": (CPP, ("charge", "ship")), "python": (program, ("charge", "fraud_check"))}
    shared_queue.run(tmp_path, kinds, {"order": "charge fraud_check ship ", "audit": "ship fraud_check "})
