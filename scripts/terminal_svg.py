#!/usr/bin/env python3
"""Draws terminal output as an SVG, for the documentation.

usage: COMMAND | scripts/terminal_svg.py 'the command as typed' > docs/images/name.svg
"""
import html
import sys

WIDTH, LINE, MARGIN = 7.8, 17, 16  # of a character, of a line, around the text, in pixels


def main():
    prompt = "$ " + sys.argv[1]
    lines = [prompt] + sys.stdin.read().rstrip("\n").split("\n")
    width = round(max(map(len, lines)) * WIDTH + 2 * MARGIN)
    height = len(lines) * LINE + 2 * MARGIN
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">')
    print(f'<rect width="{width}" height="{height}" rx="8" fill="#1b1f27"/>')
    print('<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13" fill="#d7dce4" xml:space="preserve">')
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        colour = ' fill="#8fd18f"' if number == 0 else ' fill="#5b6577"' if set(line) <= set("─ ") else ""
        # The length is stated, so that columns line up whatever font the reader has.
        print(f'<text x="{MARGIN}" y="{MARGIN + number * LINE + 13}" textLength="{len(line) * WIDTH:.1f}"{colour}>'
              f"{html.escape(line)}</text>")
    print("</g>\n</svg>")


if __name__ == "__main__":
    main()
