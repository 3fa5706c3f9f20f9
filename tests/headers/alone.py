#!/usr/bin/env python3
"""Every public header compiles on its own: it includes what it uses of ours.

usage: tests/headers/alone.py COMPILER [--bare]

LibTorch's own header is replaced by a small one that declares what ours use of it, and what the headers include besides
each other is precompiled, so that this takes seconds. --bare precompiles nothing: a header must then include what it uses
of the standard library, too (./dev check).
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FLAGS = ["-std=c++17", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", f"-I{ROOT / 'include'}", f"-I{ROOT / 'tests/headers/stub'}"]


def problem_of(compiler, flags, text=None):
    done = subprocess.run([compiler, *FLAGS, *flags], input=text, text=True, capture_output=True)
    return "" if done.returncode == 0 else done.stderr


def main():
    compiler = sys.argv[1]
    paths = sorted((ROOT / "include").rglob("*.h"))
    headers = [str(path.relative_to(ROOT / "include")) for path in paths]
    others = sorted({name for path in paths for name in re.findall(r"^#include <([\w/.]+)>", path.read_text(), re.MULTILINE)})
    failed = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        common = pathlib.Path(folder) / "others.h"
        common.write_text("".join(f"#include <{name}>\n" for name in others))
        problem = problem_of(compiler, ["-x", "c++-header", common])
        if problem:
            raise SystemExit(problem)
        alone = ["-x", "c++", "-fsyntax-only", *([] if "--bare" in sys.argv[2:] else ["-Winvalid-pch", "-include", common]), "-"]
        for header, problem in zip(headers, pool.map(lambda h: problem_of(compiler, alone, f'#include "{h}"\n'), headers)):
            if problem:
                failed += 1
                print(f"FAILED  {header}\n{problem}")
    print(f"{len(headers) - failed} headers compile on their own, {failed} do not")
    return 1 if failed or len(headers) < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
