"""The `hapax` program as a person or a script runs it."""

import json
import subprocess

from server import BINARY, SLOWDOWN, clean_environment

OK, FAILED, USAGE, NOT_FOUND, REFUSED, UNAVAILABLE, TASK_FAILED = range(7)


class Ended:
    def __init__(self, ended):
        self.code = ended.returncode
        self.out = ended.stdout
        self.err = ended.stderr

    @property
    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return f"<exit {self.code} out={self.out!r} err={self.err!r}>"


class Command:
    """`where` are the flags that name a server or a store; every run gets them."""

    def __init__(self, directory, where):
        self.directory = directory
        self.where = list(where)
        self.environment = clean_environment(directory)

    def run(self, *arguments, input=None, where=None, environment=None, deadline_s=60):
        ended = subprocess.run(
            self.line(*arguments, where=where),
            cwd=self.directory,
            env={**self.environment, **(environment or {})},
            input=input,
            stdin=None if input is not None else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=deadline_s * SLOWDOWN,
        )
        return Ended(ended)

    def ok(self, *arguments, **options):
        ended = self.run(*arguments, **options)
        assert ended.code == OK, ended
        return ended

    def json(self, *arguments, code=OK, **options):
        ended = self.run(*arguments, "--json", **options)
        assert ended.code == code, ended
        return ended.json

    def start(self, *arguments):
        """A process that keeps running; the test ends it."""
        return subprocess.Popen(
            self.line(*arguments),
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def line(self, *arguments, where=None):
        return [str(BINARY), *map(str, arguments), *(self.where if where is None else where)]
