"""A proxy in front of a server that breaks one promise of Hapax, as a bug would."""

import http.client
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class LyingProxy:
    """`lie` is one of the functions below: it gets a function to ask the server and the request; it returns status,
    body."""

    def __init__(self, port, lie):
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                try:
                    status, answer = lie(proxy, self.path, body)
                except (OSError, http.client.HTTPException):  # the server is gone
                    self.close_connection = True
                    return
                payload = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            def log_message(self, *_):
                pass

        self.server_port = port
        self.count = 0
        self._lock = threading.Lock()
        self._listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._listener.daemon_threads = True
        self.port = self._listener.server_address[1]
        threading.Thread(target=self._listener.serve_forever, daemon=True).start()

    def ask(self, path, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.server_port, timeout=30)
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        status, text = answer.status, answer.read()
        connection.close()
        return status, json.loads(text)

    def every(self, nth):
        """True for every nth request."""
        with self._lock:
            self.count += 1
            return self.count % nth == 0

    def close(self):
        self._listener.shutdown()
        self._listener.server_close()


def honest(proxy, path, body):
    return proxy.ask(path, body)


def submits_twice(proxy, path, body):
    """Like a client library that repeats a lost request under a new key."""
    if path == "/v1/tasks" and proxy.every(10):
        proxy.ask(path, {**body, "idempotency_key": body["idempotency_key"] + "-again"})
    return proxy.ask(path, body)


def forgets_the_key(proxy, path, body):
    if path == "/v1/tasks" and proxy.every(10):
        body = {name: value for name, value in body.items() if name != "idempotency_key"}
    return proxy.ask(path, body)


def acknowledges_too_early(proxy, path, body):
    """Like a server that answers before it commits, and then dies."""
    status, answer = proxy.ask(path, {**body, "dry_run": True} if path == "/v1/tasks" and proxy.every(10) else body)
    return (201 if status == 200 and answer.get("created") else status), answer


def accepts_stale_reports(proxy, path, body):
    status, answer = proxy.ask(path, body)
    if path == "/v1/claims/finish":
        outcomes = [{"lease": outcome["lease"], "ok": True} for outcome in answer["outcomes"]]
        return 200, {"outcomes": outcomes}
    return status, answer


def loses_effects(proxy, path, body):
    """Like an engine that closes a task that no worker has run."""
    status, answer = proxy.ask(path, body)
    if path == "/v1/claims" and answer.get("claims") and proxy.every(2):
        stolen = answer["claims"].pop()
        proxy.ask("/v1/claims/finish", {"outcomes": [{"lease": stolen["lease"], "result": None}]})
    return status, answer
