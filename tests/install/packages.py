#!/usr/bin/env python3
"""The Debian packages: what is in them, what they need, and that they work where they are put.

usage: tests/install/packages.py CPACK BUILD_FOLDER

Exits with 77 (skipped) where the Python package was not built or what packs is missing (dpkg-dev, file).
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from consumer import expect, run

# Of each package: files that it must have, and packages that it must need.
WANTED = {
    "galvani": (["usr/bin/galvani", "usr/share/doc/galvani/copyright"], ["libtorch1.13", "libopencv-core406", "libopenblas0-openmp"]),
    "libgalvani-dev": (["usr/include/galvani/model/network.h", "usr/lib/libgalvani_fuzz.a", "usr/lib/cmake/Galvani/GalvaniConfig.cmake"], ["libtorch-dev"]),
    "python3-galvani": (["usr/lib/python3/dist-packages/galvani/__init__.py", "usr/lib/python3/dist-packages/galvani/py.typed"], ["python3-numpy", "libtorch1.13"]),
}


def main():
    cpack, build = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    if not shutil.which("dpkg-shlibdeps") or not shutil.which("file") or not (build / "python/galvani/verbs.py").exists():
        print("the Python package was not built, or dpkg-dev or file is not installed")
        return 77
    with tempfile.TemporaryDirectory(prefix="galvani-packages.") as name:
        folder = pathlib.Path(name)
        run(cpack, "--config", build / "CPackConfig.cmake", "-B", folder / "made")
        made = sorted((folder / "made").glob("*.deb"))
        root = folder / "root"
        for package in made:
            name = run("dpkg-deb", "-f", package, "Package").strip()
            files, needed = WANTED.pop(name)
            needs = run("dpkg-deb", "-f", package, "Depends")
            for other in needed:
                expect(f"{other} " in needs or f"{other}," in needs or needs.strip().endswith(other), f"{name} does not need {other}: {needs}")
            run("dpkg-deb", "-x", package, root)
            for file in files:
                expect((root / file).is_file(), f"{name} has no {file}")
        expect(not WANTED, f"there is no package {', '.join(WANTED)}")
        for path in root.rglob("*.cmake"):
            expect(str(build) not in path.read_text(), f"{path.name} names {build}")
        environment = {**os.environ, "GALVANI_CACHE": str(folder / "cache"), "PYTHONPATH": str(root / "usr/lib/python3/dist-packages")}
        train = ["train", "lenet5", "--data", "digits:train[0:300]", "--epochs", 1, "-q", "-o", "m.onnx"]
        run(root / "usr/bin/galvani", *train, cwd=folder, env=environment)
        program = "import galvani; print(galvani.__file__, galvani.cover('m.onnx', data='digits:test[0:9]', criteria='nc')['inputs'])"
        said = run("/usr/bin/python3", "-c", program, cwd=folder, env=environment).split()
        expect(said == [str(root / "usr/lib/python3/dist-packages/galvani/__init__.py"), "9"], f"Python says {said}")
    print("ok: packed, unpacked, run")
    return 0


if __name__ == "__main__":
    sys.exit(main())
