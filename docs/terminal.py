#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""terminal.py ANNAL: run the commands below in a temporary store, and draw docs/terminal.svg from what they print.

Where pictures move, the commands are typed one after the other; elsewhere everything is shown at once. Only ages and
times change from one run to the next. `make picture` runs this script.
"""
import html
import os
import subprocess
import sys
import tempfile

COLUMNS = 102
CELL, LINE, MARGIN, BAR = 7.8, 18, 16, 30
# Seconds to type a command, to run it, to read its output, and to look at the whole.
TYPED, THOUGHT, READ, END = 1.2, 0.4, 2.2, 6.0

SESSION = "019cae51-7a10-7c33-9d02-4be0a1f35c70"
# A command, and how many lines of its output are shown: the first ones, or if negative the last ones.
COMMANDS = [
    ("""echo '{"tool":"Bash","input":"make"}' | annal append run-1 --type tool.called""", 1),
    ("annal import auto tests/data/claude-code tests/data/codex", -3),
    ("annal ls --limit 3", 4),
    ("annal search high water --limit 1", 3),
    ('annal sql "SELECT tool, calls, p50_ms FROM tool_stats ORDER BY calls DESC LIMIT 2"', 3),
    (f'annal replay {SESSION} --at 12 --sql "SELECT total_tokens FROM sessions"', 2),
    (f"annal stats --plot {SESSION}", 10),
    ("annal verify", 2),
]

STYLE = """
    .window { fill: #f6f8fa; stroke: #d0d7de }
    .bar { fill: #eaeef2 }
    .dot { fill: #afb8c1 }
    text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace; fill: #1f2328;
           white-space: pre }
    .command { font-weight: 600 }
    .prompt { fill: #1a7f37; font-weight: 600 }
    .more { fill: #656d76 }
    @media (prefers-color-scheme: dark) {
      .window { fill: #161b22; stroke: #30363d }
      .bar { fill: #21262d }
      .dot { fill: #484f58 }
      text { fill: #e6edf3 }
      .prompt { fill: #3fb950 }
      .more { fill: #8d96a0 }
    }
"""


def run(command, environment):
    """The lines that a command prints, first what it says on standard output."""
    done = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command}: {done.stderr}")
    return [line for line in (done.stdout + done.stderr).split("\n") if line.strip()]


def cut(line):
    return line if len(line) <= COLUMNS else line[: COLUMNS - 1] + "…"


def text(line, row, kind, step, at=0):
    """One line of text; textLength keeps the columns whatever font there is."""
    length = f' textLength="{len(line) * CELL:.1f}"' if line.strip() else ""
    return (f'<text x="{MARGIN + at * CELL:.1f}" y="{BAR + MARGIN + (row + 0.7) * LINE:.1f}"{length} '
            f'xml:space="preserve" class="{kind} {step}">{html.escape(line, quote=False)}</text>')


def main():
    annal = os.path.abspath(sys.argv[1])
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    drawn, steps, row, now = [], [], 0, 0.5
    with tempfile.TemporaryDirectory() as work:
        environment = dict(os.environ, ANNAL_STORE=os.path.join(work, "store"), COLUMNS=str(COLUMNS), NO_COLOR="1",
                           PATH=os.path.dirname(annal) + os.pathsep + os.environ["PATH"])
        for number, (command, most) in enumerate(COMMANDS):
            lines = run(command, environment)
            drawn.append(text("$", row, "prompt", f"s{number}"))
            drawn.append(text(cut(command), row, "command", f"t{number}", 2))
            shown = [(line, "out") for line in (lines[:most] if most > 0 else lines[most:])]
            if len(lines) > len(shown):
                rest = (f"… {len(lines) - len(shown)} more", "more")
                shown = shown + [rest] if most > 0 else [rest] + shown
            for line, kind in shown:
                row += 1
                drawn.append(text(cut(line), row, kind, f"o{number}"))
            row += 1
            steps.append((now, now + TYPED, now + TYPED + THOUGHT, len(command)))
            now += TYPED + THOUGHT + READ
    total = now + END

    moving = []
    for number, (begin, typed, answered, letters) in enumerate(steps):
        a, b, c = (100 * moment / total for moment in (begin, typed, answered))
        moving.append(f"@keyframes s{number} {{ 0% {{ opacity: 0 }} {a:.2f}% {{ opacity: 1 }} }}")
        moving.append(f"@keyframes o{number} {{ 0% {{ opacity: 0 }} {c:.2f}% {{ opacity: 1 }} }}")
        moving.append(f"@keyframes t{number} {{ 0%, {a:.2f}% {{ clip-path: inset(-4px 100% -4px 0); "
                      f"animation-timing-function: steps({letters}) }} "
                      f"{b:.2f}%, 100% {{ clip-path: inset(-4px -4px -4px 0) }} }}")
        for kind in "so":
            moving.append(f".{kind}{number} {{ animation: {kind}{number} {total:.1f}s step-end infinite }}")
        moving.append(f".t{number} {{ animation: t{number} {total:.1f}s infinite }}")

    width, height = 2 * MARGIN + COLUMNS * CELL, BAR + 2 * MARGIN + row * LINE
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
           f'height="{height:.0f}" role="img" aria-label="A terminal in which annal appends, imports, lists, searches, '
           'queries, replays and verifies">',
           "<style>" + STYLE + "    @media (prefers-reduced-motion: no-preference) {",
           *("      " + line for line in moving), "    }", "</style>",
           f'<rect class="window" x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="8"/>',
           f'<path class="bar" d="M1 {BAR}V9a8 8 0 0 1 8-8H{width - 9:.0f}a8 8 0 0 1 8 8V{BAR}z"/>',
           *(f'<circle class="dot" cx="{18 + 20 * i}" cy="{BAR / 2:.0f}" r="5.5"/>' for i in range(3)),
           *drawn, "</svg>"]
    with open("docs/terminal.svg", "w", encoding="utf-8") as file:
        file.write("\n".join(svg) + "\n")


main()
