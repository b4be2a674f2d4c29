"""The usual shape: one program submits, another works. Here the same file is both.

hapax-worker worker_and_submitter:app      # in one terminal
python worker_and_submitter.py             # in another
"""

import sys

import hapax

app = hapax.Hapax()


@app.task
def shout(text: str) -> str:
    return text.upper()


def main() -> None:
    handle = shout.options(key="shout-1").submit_sync("hello")
    print("created" if handle.created else "found")
    if "--work" in sys.argv:
        app.work(until_idle="200ms")
    print(handle.wait(timeout="30s"))


if __name__ == "__main__":
    main()
