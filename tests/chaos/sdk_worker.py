"""A worker of the Python SDK, without the engine: it claims over HTTP.

    sdk_worker.py PORT NAME TYPE…

It knows the types that it is told and the workflow `audit`, and no others.
"""

import asyncio
import pathlib
import signal
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python" / "src"))

import hapax  # noqa: E402

port, name, *types = sys.argv[1:]
app = hapax.Hapax(f"http://127.0.0.1:{port}")


def declare(type):
    @app.task(name=type, queue="orders")
    async def task():
        await asyncio.sleep(0.002)  # some work
        return type


@app.workflow(queue="orders")
async def audit(ctx: hapax.Context):
    ran = ""
    for step in ("ship", "fraud_check"):
        ran += await ctx.run(step) + " "
    return ran


def announce():
    """Once a signal would end it gently."""
    while not callable(signal.getsignal(signal.SIGTERM)):
        time.sleep(0.01)
    print("working", flush=True)


for each in types:
    declare(each)
threading.Thread(target=announce, daemon=True).start()
app.work(lease="2s", name=name, queues=["orders"])
