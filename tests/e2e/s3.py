"""The test's own real S3 server: Ceph's gateway, started by tests/support/ceph-rgw."""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import urllib.parse

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "support" / "ceph-rgw"
ACCESS_KEY, SECRET_KEY = "testaccess", "testsecret12345"


def _free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class S3:
    """It ends with this process, however this process ends: the script watches its standard input."""

    environment = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "AWS_REGION": "us-east-1"}

    def __init__(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="hapax-s3-"))
        self.process = self.port = None

    def start(self):
        for _ in range(3):  # another process may have taken one of the ports
            self.port, monitor_port = _free_ports(2)
            variables = {"S3_DIR": str(self.home / "s3"), "S3_PORT": str(self.port), "S3_MON_PORT": str(monitor_port),
                         "S3_ACCESS_KEY": ACCESS_KEY, "S3_SECRET_KEY": SECRET_KEY}
            with open(self.home / "errors", "w") as errors:
                self.process = subprocess.Popen([str(SCRIPT), "run"], env={**os.environ, **variables}, text=True,
                                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
            if self.process.stdout.readline():
                return self
            self._end()
        raise AssertionError("the S3 server does not start: " + (self.home / "errors").read_text())

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    def create_bucket(self, name):
        """The URL of a store in it."""
        url = f"s3://{name}/hapax?endpoint={self.endpoint}"
        self.ask("PUT", url, "")
        return url

    def ask(self, method, url, query):
        """The answer of the bucket at that URL."""
        bucket = urllib.parse.urlsplit(url).netloc
        command = ["curl", "-sf", "-X", method, "--aws-sigv4", "aws:amz:us-east-1:s3", "-u", f"{ACCESS_KEY}:{SECRET_KEY}",
                   "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD", f"{self.endpoint}/{bucket}{query}"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def close(self):
        self._end()
        shutil.rmtree(self.home)

    def _end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
