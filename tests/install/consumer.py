#!/usr/bin/env python3
"""Galvani as others use it: installed, found by find_package, and nothing of the build in it.

usage: tests/install/consumer.py CMAKE BUILD_FOLDER

Installs the build into a temporary folder, builds examples/ against that copy alone, and runs it. A program that
includes every public header is built with it, to see that no flag or macro of ours leaks into it.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIMIT = 600
# Of our own build; a consumer has its own.
OUR_FLAGS = ["-Wall", "-Wextra", "-Wshadow", "-ffp-contract", "-fpch-preprocess", "-DONNX_", "-DGALVANI_VERSION", "-DSPDLOG_",
             "-DTOML_", "opencv4"]


def run(*command, code=0, **more):
    result = subprocess.run([str(part) for part in command], text=True, capture_output=True, timeout=LIMIT, **more)
    if result.returncode != code:
        print(result.stdout[-3000:], result.stderr[-3000:], sep="\n")
        raise SystemExit(f"FAILED  exit {result.returncode} instead of {code}: {' '.join(map(str, command))}")
    return result.stdout


def expect(condition, what):
    if not condition:
        raise SystemExit(f"FAILED  {what}")


def write_headers_program(source, installed):
    """Every public header in one program, in no particular order, twice."""
    headers = sorted(path.relative_to(installed) for path in (installed / "galvani").rglob("*.h"))
    expect(len(headers) > 40, f"only {len(headers)} headers are installed")
    lines = [f'#include "{header}"' for header in [*reversed(headers), *headers]]
    (source / "headers.cpp").write_text("\n".join(lines) + "\nint main() {}\n")
    with (source / "CMakeLists.txt").open("a") as file:
        file.write("add_executable(headers headers.cpp)\ntarget_link_libraries(headers PRIVATE galvani::galvani)\n")


def main():
    cmake, build = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory(prefix="galvani-install.") as name:
        folder = pathlib.Path(name)
        prefix, source, consumer = folder / "prefix", folder / "source", folder / "build"
        run(cmake, "--install", build, "--prefix", prefix)
        source.mkdir()
        for path in (ROOT / "examples").iterdir():
            (source / path.name).write_bytes(path.read_bytes())
        write_headers_program(source, prefix / "include")
        for path in prefix.rglob("*.cmake"):
            for place in (build, ROOT):
                expect(str(place) not in path.read_text(), f"{path.name} names {place}")
        run(cmake, "-G", "Ninja", "-S", source, "-B", consumer, f"-DCMAKE_PREFIX_PATH={prefix}",
            "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DCMAKE_BUILD_TYPE=Release")
        for entry in json.loads((consumer / "compile_commands.json").read_text()):
            for flag in OUR_FLAGS:
                expect(flag not in entry["command"], f"{flag} leaks: {entry['command']}")
        run(cmake, "--build", consumer)

        def in_cache(*command, code=0):
            return run(*command, code=code, cwd=folder, env=dict(os.environ, GALVANI_CACHE=str(folder / "cache")))

        galvani = next(prefix.rglob("bin/galvani"))
        in_cache(galvani, "train", "lenet5", "--data", "digits:train[0:1000]", "--epochs", 1, "-q", "-o", "lenet5.onnx")
        program = [consumer / "coverage_gate", "lenet5.onnx", "digits:test[0:300]"]
        text = in_cache(*program, "tknc>1")
        expect(all(word in text for word in ("inputs 300", "tknc ", "accuracy ", "faults ")), f"it says {text!r}")
        expect("failed: tknc<=1" in in_cache(*program, "tknc<=1", code=1), "a condition that holds is not told")
        in_cache(*program, "zebras>1", code=2)
    print("ok: installed, found, built, run")


if __name__ == "__main__":
    main()
