"""The chart of docs/performance.md: one panel for each measure, one bar for each peer, each panel to its own scale."""

import html

WIDTH = 880
COLUMNS = 2
GAP = 28
NAME_WIDTH = 172
VALUE_WIDTH = 92
BAR = 15
LINE = 21
TITLE = 30

STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600; font-size: 13px }
  .peer { fill: #9aa7b4 }
  .hapax { fill: #c2410c }
  .ours { font-weight: 600 }
  @media (prefers-color-scheme: dark) { text { fill: #d0d7de } .peer { fill: #57626e } .hapax { fill: #fb923c } }
"""


def _panel(summary, measure, left, top, width):
    bars = [(peer, summary.median(measure.name, peer.name)) for peer in summary.peers if not peer.is_python]
    bars = [(peer, value) for peer, value in bars if value is not None]
    room = width - NAME_WIDTH - VALUE_WIDTH
    longest = max(value for _, value in bars)
    how = "p50 / p99 in ms, shorter is better" if measure.name == "latency" else measure.unit
    parts = [f'<text class="title" x="{left}" y="{top + 14}">{html.escape(measure.title)}, {how}</text>']
    for index, (peer, value) in enumerate(bars):
        y = top + TITLE + index * LINE
        ours = " ours" if peer.is_hapax else ""
        length = max(1.0, room * value / longest)
        label = summary.cell(measure, peer).replace(" ¹", " (drops results)")
        parts.append(f'<text class="name{ours}" x="{left + NAME_WIDTH - 8}" y="{y + 12}" text-anchor="end">{html.escape(peer.name)}</text>')
        parts.append(
            f'<rect class="{"hapax" if peer.is_hapax else "peer"}" x="{left + NAME_WIDTH}" y="{y}" width="{length:.1f}" height="{BAR}" rx="2"/>'
        )
        parts.append(f'<text class="value{ours}" x="{left + NAME_WIDTH + length + 6:.1f}" y="{y + 12}">{label}</text>')
    return parts, TITLE + len(bars) * LINE


def draw(summary):
    """The SVG's text."""
    width = (WIDTH - GAP * (COLUMNS - 1)) / COLUMNS
    parts, top, row_height = [], 8, 0
    peers = [peer for peer in summary.peers if not peer.is_python]  # those have a table of their own
    measured = [measure for measure in summary.measures if any(summary.median(measure.name, peer.name) for peer in peers)]
    for index, measure in enumerate(measured):
        column = index % COLUMNS
        if column == 0:
            top += row_height
            row_height = 0
        panel, height = _panel(summary, measure, column * (width + GAP), top, width)
        parts += panel
        row_height = max(row_height, height + GAP)
    height = top + row_height
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="Hapax next to its peers">'
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>", ""])
