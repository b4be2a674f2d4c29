"""Workers: they claim tasks and turns, run them, keep their leases, and report.

`worker.py` is the whole, `lanes.py` claims, `attempts.py` runs a task, `turns.py` runs turns of workflows, `reports.py`
sends what came out, `heartbeat.py` keeps leases from another process, `main.py` is the command `hapax-worker`.
"""

from hapax.worker.worker import Worker

__all__ = ["Worker"]
