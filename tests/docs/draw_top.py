"""Draws docs/top.svg: what `hapax top` shows on a real terminal (tmux) while a server is busy.

Run as `HAPAX_BINARY=build/release/hapax PYTHONPATH=tests/e2e /usr/bin/python3 tests/docs/draw_top.py`; needs tmux.
"""

import html
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from server import BINARY, Server, clean_environment

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLUMNS, LINES = 120, 24
CELL_WIDTH, CELL_HEIGHT, MARGIN = 8.4, 18, 14
COLOURS = ["#3b4252", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#dcdfe4"]
SGR = re.compile(r"\x1b\[([\d;]*)m")

# Some cards are declined for good, some providers answer at the second attempt only.
CHARGE = """n=$(cat); sleep 0.05
[ $((n % 50)) = 7 ] && { echo 'the card was declined' >&2; exit 100; }
[ $((n % 9)) = 3 ] && [ $HAPAX_ATTEMPT = 1 ] && exit 1
echo 1"""

HANDLERS = {  # queue: command, how many at once
    "payments": (CHARGE, 3),
    "mail": ("sleep 0.4; echo 1", 2),
    "thumbnails": ("sleep 2; echo 1", 2),
}


def submit(server, queue, kind, count):
    tasks = [{"type": kind, "queue": queue, "input": number, "idempotency_key": f"{kind}-{number}"} for number in range(count)]
    server.client.post("/v1/tasks/batch", {"tasks": tasks})


def styled_runs(line):
    """(text, colour, bold, inverse) for each stretch of a captured line."""
    colour, bold, inverse, position = None, False, False, 0
    for code in [*SGR.finditer(line), None]:
        end = code.start() if code else len(line)
        if end > position:
            yield line[position:end], colour, bold, inverse
        if code is None:
            return
        position = code.end()
        for number in (int(part or 0) for part in code.group(1).split(";")):
            if number == 0:
                colour, bold, inverse = None, False, False
            elif number in (1, 2):
                bold = number == 1
                colour = "#8b93a1" if number == 2 else colour
            elif number == 7:
                inverse = True
            elif 30 <= number <= 37:
                colour = COLOURS[number - 30]
            elif 90 <= number <= 97:
                colour = COLOURS[number - 90]
            elif number == 39:
                colour = None


def draw(lines):
    width, height = COLUMNS * CELL_WIDTH + 2 * MARGIN, len(lines) * CELL_HEIGHT + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="hapax top">',
        '<rect width="100%" height="100%" rx="8" fill="#1e222a"/>',
        '<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" xml:space="preserve" style="white-space:pre">',
    ]
    for row, line in enumerate(lines):
        column = 0
        for text, colour, bold, inverse in styled_runs(line):
            x, y = MARGIN + column * CELL_WIDTH, MARGIN + row * CELL_HEIGHT
            extent = len(text) * CELL_WIDTH
            if inverse:
                parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{extent:.1f}" height="{CELL_HEIGHT}" fill="#dcdfe4"/>')
            if text.strip():
                fill = "#1e222a" if inverse else colour or "#dcdfe4"
                weight = ' font-weight="bold"' if bold else ""
                parts.append(
                    f'<text x="{x:.1f}" y="{y + 13.5:.1f}" textLength="{extent:.1f}" fill="{fill}"{weight}>{html.escape(text)}</text>'
                )
            column += len(text)
    return "\n".join([*parts, "</g>", "</svg>"]) + "\n"


def capture(server, directory):
    tmux = ["tmux", "-S", str(directory / "tmux")]
    environment = {**clean_environment(directory), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    command = f"{BINARY} top --url http://127.0.0.1:{server.port}"
    subprocess.run([*tmux, "-u", "new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES), command], env=environment, check=True)
    try:
        for _ in range(80):  # rates need some time to settle
            submit(server, "mail", "welcome_mail", 3)
            submit(server, "payments", f"charge_{time.monotonic_ns()}", 2)
            time.sleep(0.1)
        shown = subprocess.run([*tmux, "capture-pane", "-e", "-p"], env=environment, check=True, capture_output=True, text=True).stdout
    finally:
        subprocess.run([*tmux, "kill-server"], env=environment, check=False)
    return shown.rstrip().splitlines()


def main():
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        server = Server(directory / "server").start()
        submit(server, "payments", "charge_customer", 900)
        submit(server, "mail", "welcome_mail", 300)
        submit(server, "thumbnails", "make_thumbnail", 60)
        workers = [
            subprocess.Popen(
                [str(BINARY), "work", "--url", f"http://127.0.0.1:{server.port}", "--queue", queue, "--exec", command,
                 "--concurrency", str(at_once), "--name", f"{queue}-worker"],
                env=clean_environment(directory), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
            for queue, (command, at_once) in HANDLERS.items()
        ]
        try:
            lines = capture(server, directory)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
            server.kill()
    (ROOT / "docs" / "top.svg").write_text(draw(lines), encoding="utf-8")
    print("\n".join(SGR.sub("", line) for line in lines))
    return 0 if lines else 1


if __name__ == "__main__":
    sys.exit(main())
