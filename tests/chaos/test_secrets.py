"""Passwords and tokens: their sources, and that they are never shown."""

import signal
import subprocess

from command import Command
from patience import retry_until
from server import Server

SECRET = "s3cr3t-of-the-test"


def test_password_is_shown_nowhere(postgres, tmp_path):
    url = postgres.url().replace(f"{postgres.role}@", f"{postgres.role}:{SECRET}@") + f"&sslpassword={SECRET}"
    server = Server(tmp_path / "server", store=url).start()
    try:
        with open(f"/proc/{server.pid}/cmdline", "rb") as line:
            assert SECRET not in line.read().decode()
        command = Command(tmp_path, ["--store", url])
        command.ok("submit", "t", "1")
        seen = [command.run("doctor"), command.run("doctor", "--json"), command.run("top", "--once"), command.run("list"),
                command.run("work", "--exec", "cat", "--once"), command.run("bench", "--tasks", "10", "--json"),
                command.run("get", "nothing"), command.run("get", "x", url),
                command.run("migrate"), command.run("list", where=["--url", url]),
                command.run("list", where=["--store", url.replace("postgres://", "postgrse://")]),
                command.run("list", where=["--store", url.replace("/hapax", "/nothing")]),
                command.run("list", where=["--store", url + "&nonsense=1"]),
                command.run("list", where=["--store", url.replace(SECRET + "@", SECRET + "@@")]),
                command.run("list", where=["--store", f"http://u:{SECRET}@127.0.0.1:1"]),
                command.run("list", where=["--url", f"http://u:{SECRET}@127.0.0.1:1"])]
        for ended in seen:
            assert SECRET not in ended.out + ended.err, ended
        waiting = command.start("work", "--exec", "cat", "--token", SECRET)
        try:
            retry_until(lambda: b"work" in (text := open(f"/proc/{waiting.pid}/cmdline", "rb").read())
                        and SECRET.encode() not in text)
        finally:
            waiting.send_signal(signal.SIGTERM)
            waiting.communicate(timeout=20)
    finally:
        server.stop()
    assert SECRET not in server.log + server.printed


def test_url_and_token_come_from_files(postgres, tmp_path):
    store, token = tmp_path / "store", tmp_path / "token"
    store.write_text(postgres.url() + "\n")
    token.write_text("  of the file\n")
    command = Command(tmp_path, [])
    assert "up to date" in command.ok("migrate", "--store-file", str(store)).out
    assert command.json("list", "--store-file", str(store))["executions"] == []
    ended = command.run("list", "--store-file", str(tmp_path / "missing"))
    assert ended.code == 2 and "--store-file" in ended.err, ended
    ended = command.run("list", "--store", "sqlite:x", "--store-file", str(store))
    assert ended.code == 2 and "exclude each other" in ended.err, ended
    server = subprocess.Popen([*command.line("serve", "--listen", "127.0.0.1:0", "--store-file", str(store))], cwd=tmp_path,
                              env=command.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert "listening on" in server.stdout.readline()
    finally:
        server.terminate()
        server.communicate(timeout=20)
