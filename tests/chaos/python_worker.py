"""A worker that is written from docs/protocol.md alone: tests/e2e/workflow_worker.py as a program.

    python_worker.py PORT NAME TYPE…

It knows the types that it is told and the workflow `audit`, and no others. At SIGTERM it ends what it has, and exits
with 0.
"""

import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from client import Client  # noqa: E402
from workflow_worker import WorkflowWorker  # noqa: E402


def task_of(type):
    def task(_input, _execution):
        time.sleep(0.002)  # some work
        return type

    return task


def audit(ctx, _input):
    ran = ""
    for step in ("ship", "fraud_check"):
        ran += (yield ctx.task(step, None, queue="orders")) + " "
    return ran


def main():
    port, name, *types = sys.argv[1:]
    ending = []
    signal.signal(signal.SIGTERM, lambda *_: ending.append(True))
    tasks = {type: task_of(type) for type in types}
    worker = WorkflowWorker(Client(int(port)), {"audit": audit}, tasks, queues=["orders"], name=name)
    print("working", flush=True)
    while not ending:
        worker.work(wait="500ms", lease="2s")


if __name__ == "__main__":
    main()
