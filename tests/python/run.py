#!/usr/bin/env python3
"""Tests of the Python package: run.py GALVANI PACKAGES MODELS [TEST]...

GALVANI is the binary the results are compared with, PACKAGES the folder that holds the package (build/python), MODELS
that of tests/e2e/run.py --prepare. Exits 77, which CTest calls skipped, where the package was not built.
"""
import os
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent


def main():
    galvani, packages, models = (os.path.abspath(path) for path in sys.argv[1:4])
    if not (pathlib.Path(packages) / "galvani/verbs.py").exists():
        print("the Python package was not built: ninja -C build python")
        return 77
    os.environ.update(GALVANI=galvani, GALVANI_MODELS=models, PYTHONPATH=packages)
    sys.path[:0] = [packages, str(HERE)]
    with tempfile.TemporaryDirectory(prefix="galvani-python-") as folder:
        os.environ["GALVANI_CACHE"] = os.path.join(folder, "cache")
        os.chdir(folder)
        names = sys.argv[4:] or sorted(path.stem for path in HERE.glob("test_*.py"))
        suite = unittest.defaultTestLoader.loadTestsFromNames(names)
        result = unittest.TextTestRunner(verbosity=2).run(suite)
        os.chdir("/")
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
