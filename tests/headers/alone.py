#!/usr/bin/env python3
"""Every public header compiles on its own: it includes what it uses.

usage: tests/headers/alone.py COMPILER

LibTorch's own header is replaced by a small one that declares what ours use of it, so that this takes seconds.
"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FLAGS = ["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-pragma-once-outside-header", "-Werror",
         f"-I{ROOT / 'include'}", f"-I{ROOT / 'tests/headers/stub'}"]


def compile_alone(compiler, header):
    result = subprocess.run([compiler, *FLAGS, "-x", "c++", "-"], input=f'#include "{header}"\n', text=True, capture_output=True)
    return "" if result.returncode == 0 else result.stderr


def main():
    headers = sorted(str(path.relative_to(ROOT / "include")) for path in (ROOT / "include").rglob("*.h"))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for header, problem in zip(headers, pool.map(lambda h: compile_alone(sys.argv[1], h), headers)):
            if problem:
                failed += 1
                print(f"FAILED  {header}\n{problem}")
    print(f"{len(headers) - failed} headers compile on their own, {failed} do not")
    return 1 if failed or len(headers) < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
