#!/usr/bin/env python3
"""Runs a command in a terminal of its own and draws the last full screen it showed as SVG.

usage: scripts/terminal_svg.py OUT.svg [--size 100x26] [--at SECONDS] -- COMMAND...    --at: the screen of that moment
"""
import argparse
import fcntl
import html
import os
import pty
import re
import struct
import sys
import termios
import time

COLOURS = {30: "#3b4252", 31: "#ff7b72", 32: "#7ee787", 33: "#f2cc60", 34: "#79c0ff", 35: "#d2a8ff", 36: "#76d9e6",
           37: "#d8dee9", 90: "#6e7a8a"}
PAPER, INK = "#0d1117", "#d8dee9"
CELL_WIDTH, CELL_HEIGHT, MARGIN = 8.4, 18, 14
SEQUENCE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])")


class Screen:
    """As much of a terminal as the status screen uses."""

    def __init__(self, width, height):
        self.width, self.height = width, height
        self.clear()
        self.style = (INK, False)
        self.alternate = False
        self.cursor_shown = True
        self.keep = False  # `last` is of an earlier moment
        self.last = None  # what the alternate screen held when it was left

    def clear(self):
        self.cells = [[(" ", (INK, False))] * self.width for _ in range(self.height)]
        self.x = self.y = 0

    def feed(self, text):
        at = 0
        while at < len(text):
            match = SEQUENCE.match(text, at)
            if match:
                self.obey(match.group(1), match.group(2))
                at = match.end()
                continue
            if text[at] == "\r":
                self.x = 0
            elif text[at] == "\n":
                self.y = min(self.y + 1, self.height - 1)
            elif self.x < self.width and text[at] >= " ":
                self.cells[self.y][self.x] = (text[at], self.style)
                self.x += 1
            at += 1

    def obey(self, parameters, letter):
        if letter == "H":
            self.x = self.y = 0
        elif letter == "J":
            self.clear()
        elif letter == "K":
            self.cells[self.y][self.x:] = [(" ", (INK, False))] * (self.width - self.x)
        elif letter in "hl" and parameters == "?1049":
            if letter == "l" and self.alternate and not self.keep:
                self.last = [list(row) for row in self.cells]
            self.alternate = letter == "h"
            self.clear()
        elif letter in "hl" and parameters == "?25":
            self.cursor_shown = letter == "h"
        elif letter == "m":
            for code in (int(p or 0) for p in parameters.split(";")):
                if code == 0:
                    self.style = (INK, False)
                elif code == 1:
                    self.style = (self.style[0], True)
                elif code in COLOURS:
                    self.style = (COLOURS[code], self.style[1])


def run(command, width, height, moment=None):
    """The screen after the command has ended, all it wrote, and its exit code."""
    child, fd = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        os.environ["TERM"] = "xterm-256color"
        os.execvp(command[0], command)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    screen, everything, held, start = Screen(width, height), "", b"", None
    while True:
        try:
            data = os.read(fd, 65536)
        except OSError:
            data = b""
        if not data:
            break
        held += data
        # Only whole characters and sequences are looked at.
        cut = len(held)
        escape = held.rfind(b"\x1b")
        if escape >= 0 and not SEQUENCE.match(held[escape:].decode("utf-8", "replace")):
            cut = escape
        try:
            text = held[:cut].decode()
        except UnicodeDecodeError as error:
            cut = error.start
            text = held[:cut].decode()
        held = held[cut:]
        everything += text
        # A frame ends where its last sequence does.
        if moment is not None and start is not None and time.monotonic() - start >= moment:
            screen.last, moment = [list(row) for row in screen.cells], None
            screen.keep = True
        screen.feed(text)
        start = start or (time.monotonic() if screen.alternate else None)
    return screen, everything, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def svg(cells):
    while cells and all(c == " " for c, _ in cells[-1]):
        cells = cells[:-1]
    width = max(len(row) for row in cells) * CELL_WIDTH + 2 * MARGIN
    height = len(cells) * CELL_HEIGHT + 2 * MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
           f'height="{height:.0f}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14">',
           f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>']
    for y, row in enumerate(cells):
        x = 0
        while x < len(row):
            end = x
            while end < len(row) and row[end][1] == row[x][1]:
                end += 1
            text = "".join(c for c, _ in row[x:end])
            if text.strip():
                colour, bold = row[x][1]
                weight = ' font-weight="bold"' if bold else ""
                out.append(f'<text x="{MARGIN + x * CELL_WIDTH:.1f}" y="{MARGIN + y * CELL_HEIGHT + 14:.1f}" '
                           f'fill="{colour}"{weight} '
                           f'textLength="{len(text) * CELL_WIDTH:.1f}" xml:space="preserve">{html.escape(text)}</text>')
            x = end
    return "\n".join(out) + "\n</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--size", default="100x26")
    parser.add_argument("--at", type=float)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    width, height = map(int, arguments.size.split("x"))
    screen, _, code = run(arguments.command, width, height, arguments.at)
    if screen.last is None:
        print("the command showed no full screen", file=sys.stderr)
        return 1
    with open(arguments.out, "w", encoding="utf-8") as file:
        file.write(svg(screen.last))
    return code


if __name__ == "__main__":
    sys.exit(main())
