"""A small JSON client with one kept connection per thread, and bare sockets for what a normal client cannot do: many
requests at the same instant, malformed ones, waiting ones."""

import http.client
import json
import select
import socket
import threading

ABSENT = object()


class Response:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = {name.lower(): value for name, value in headers}
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.body[:600]!r}>"


class Client:
    """`port` may be a function, called for every new connection, so that a client survives restarts of its server.
    Threads may share it; each has its own connection. A request is sent once; a failure raises OSError."""

    def __init__(self, port, headers=None, timeout=60):
        self._port = port if callable(port) else lambda: port
        self._headers = headers or {}
        self._timeout = timeout
        self._local = threading.local()

    def request(self, method, path, body=ABSENT, headers=None, raw=None):
        payload = raw if raw is not None else None if body is ABSENT else json.dumps(body).encode()
        sent_headers = {**self._headers, **(headers or {})}
        if payload is not None:
            sent_headers.setdefault("Content-Type", "application/json")
        sent_headers = {name: value for name, value in sent_headers.items() if value is not None}
        connection = self._connection()
        try:
            connection.request(method, path, payload, sent_headers)
            answer = connection.getresponse()
            response = Response(answer.status, answer.getheaders(), answer.read())
        except http.client.HTTPException as broken:
            self.close()
            raise ConnectionError(f"{method} {path}: {broken!r}") from broken
        except OSError:
            self.close()
            raise
        if answer.will_close:
            self.close()
        return response

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, body=ABSENT, **options):
        return self.request("POST", path, body, **options)

    def put(self, path, body=ABSENT, **options):
        return self.request("PUT", path, body, **options)

    def patch(self, path, body=ABSENT, **options):
        return self.request("PATCH", path, body, **options)

    def delete(self, path, **options):
        return self.request("DELETE", path, **options)

    def close(self):
        connection = getattr(self._local, "connection", None)
        if connection:
            connection.close()
            self._local.connection = None

    def _connection(self):
        connection = getattr(self._local, "connection", None)
        port = self._port()
        # The server closed an idle connection that has become readable: nothing was sent on it, so it is safe to
        # take a new one.
        if connection and (connection.port != port or select.select([connection.sock], [], [], 0)[0]):
            self.close()
            connection = None
        if not connection:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=self._timeout)
            connection.connect()
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._local.connection = connection
        return connection


def request_bytes(method, path, body=None, headers=None):
    payload = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if payload:
        lines += ["Content-Type: application/json", f"Content-Length: {len(payload)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + payload


class RawConnection:
    def __init__(self, port, timeout=60):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = self.socket.makefile("rb")

    def send(self, data):
        self.socket.sendall(data)

    def read_line(self):
        return self._reader.readline()

    def read_response(self):
        """The next answer, or None if the server closed the connection instead."""
        line = self.read_line()
        if not line:
            return None
        status = int(line.split()[1])
        headers = []
        while (line := self._reader.readline().strip()):
            name, _, value = line.decode("latin-1").partition(":")
            headers.append((name, value.strip()))
        length = int(dict((name.lower(), value) for name, value in headers).get("content-length", 0))
        return Response(status, headers, self._reader.read(length))

    def close(self):
        self._reader.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Volley:
    """Several connections whose requests reach their servers at the same instant: it sends all but the last byte of
    every request first, then the last bytes together."""

    def __init__(self, ports):
        self._connections = [RawConnection(port) for port in ports]

    def fire(self, requests):
        for connection, request in zip(self._connections, requests, strict=True):
            connection.send(request[:-1])
        for connection, request in zip(self._connections, requests):
            connection.send(request[-1:])
        return [connection.read_response() for connection in self._connections]

    def close(self):
        for connection in self._connections:
            connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
