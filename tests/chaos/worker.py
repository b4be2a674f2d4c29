"""One worker process: claims at any server that answers, performs its effect, reports, and records all of it.

    worker.py DIRECTORY NAME SEED LATE LEASE PORT_FILE…    until it is killed

Some attempts fail, and LATE of them (0 to 1) report only after their lease of LEASE seconds has ended: those reports
must be refused.
"""

import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from client import Client  # noqa: E402
from history import Claimed, Finished  # noqa: E402
from record import Record, instant  # noqa: E402

QUEUE = "chaos"


class Worker:
    def __init__(self, directory, name, seed, late_share, lease_s, port_files):
        self.name, self.late_share, self.lease_s = name, late_share, lease_s
        self.chance = random.Random(seed)
        self.events = Record(pathlib.Path(directory) / f"events-{name}.jsonl")
        self.effects = Record(pathlib.Path(directory) / f"effects-{name}.jsonl")
        self.clients = [Client(lambda path=path: int(pathlib.Path(path).read_text()), timeout=10) for path in port_files]
        self.late = []  # (when, claim)

    def ask(self, path, body):
        """The answer of the first server that answers, or None if all failed once."""
        for client in self.chance.sample(self.clients, len(self.clients)):
            try:
                answer = client.post(path, body)
            except (OSError, ValueError):
                continue
            if answer.status in (200, 409):
                return answer.json
        time.sleep(0.05)  # between two tries, so that a restarting database is not flooded
        return None

    def run(self):
        while True:
            sent = instant()
            body = {"worker": self.name, "queues": [QUEUE], "limit": 20, "wait": "200ms", "lease": f"{self.lease_s}s"}
            answer = self.ask("/v1/claims", body)
            answered = instant()
            for claim in (answer or {}).get("claims", []):
                self.handle(claim, sent, answered)
            while self.late and time.monotonic() > self.late[0][0]:
                self.report(self.late.pop(0)[1])

    def handle(self, claim, sent, answered):
        execution = claim["execution"]
        taken = Claimed(sent, answered, execution["id"], claim["attempt"], claim["lease"])
        self.events.event(taken)
        fate = self.chance.random()
        if fate < 0.02:
            error = {"type": "Chaos", "message": "an attempt that fails", "retryable": True}
            self.ask("/v1/claims/finish", {"outcomes": [{"lease": claim["lease"], "error": error}]})
            return
        effect = {"id": taken.id, "attempt": taken.attempt, "effect_key": claim["effect_key"]}
        self.effects.write({**effect, "nonce": execution["input"]["nonce"], "at": instant()})
        if fate < 0.02 + self.late_share:
            self.late.append((time.monotonic() + self.lease_s + 0.5, taken))
        else:
            self.report(taken)

    def report(self, claim):
        result = {"by": claim.lease}
        while True:
            event = Finished(instant(), None, claim.id, claim.attempt, claim.lease, result)
            self.events.event(event)
            answer = self.ask("/v1/claims/finish", {"outcomes": [{"lease": claim.lease, "result": result}]})
            if answer is not None:
                event.accepted = answer["outcomes"][0].get("ok", False)
                event.answered = instant()
                self.events.event(event)
                return


if __name__ == "__main__":
    Worker(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), int(sys.argv[5]), sys.argv[6:]).run()
