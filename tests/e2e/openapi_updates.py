"""Every answer of the route for updates, for test_openapi.py."""


def walk_updates(witness, caller):
    path = "/v1/workflows/walked-updates"

    def ask(key, payload, expect, name="ask", to=path):
        headers = {"Idempotency-Key": key} if key else {}
        witness.call(caller, "post", f"{to}/updates/{name}?wait=0", {"payload": payload}, headers=headers, expect=expect)

    start = {"type": "updated", "queue": "updated", "workflow_id": "walked-updates"}
    witness.call(caller, "post", "/v1/workflows", start, expect=201)
    ask("u1", 1, 202)
    ask("u2", 2, 202)
    body = {"queues": ["updated"], "kinds": ["workflow"], "wait": "10s"}
    claim = witness.call(caller, "post", "/v1/claims", body, expect=200).json["claims"][0]
    commands = [
        {"step": 1, "kind": "publish", "name": "hapax.answer:u1", "value": {"result": 7}},
        {"step": 2, "kind": "publish", "name": "hapax.answer:u2", "value": {"error": {"type": "No", "message": "no"}}},
    ]
    turn = {"lease": claim["lease"], "seen": 2, "commands": commands, "end": {"kind": "suspended"}}
    witness.call(caller, "post", "/v1/claims/turns", {"turns": [turn]}, expect=200)
    ask("u1", 1, 200)
    ask("u2", 2, 409)
    ask("u1", 2, 409)
    ask(None, 1, 400)
    ask("u3", 1, 404, to="/v1/workflows/unknown")
