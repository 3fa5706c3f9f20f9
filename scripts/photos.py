#!/usr/bin/env python3
"""Photos for networks of ImageNet, out of Debian's packages; nothing is installed.

usage: scripts/photos.py FOLDER
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

PACKAGES = ("opencv-doc", "python3-skimage", "python3-sklearn")
# What is no photo (charts, boards, letters, parts of stereo pairs and of other pictures) is left out.
NAMES = """
000.jpg 001.jpg 002.jpg HappyFish.jpg WindowsLogo.jpg aero1.jpg aero3.jpg aloeL.jpg aloeR.jpg apple.jpg astronaut.png baboon.jpg board.jpg
building.jpg butterfly.jpg butterfly.png chelsea.png chicky_512.png china.jpg coffee.png color.png ela_modified.jpg ela_original.jpg
flower.jpg fruits.jpg graf1.png graf3.png home.jpg home.png ihc.png imageTextN.png input.png left.jpg leuvenA.jpg leuvenB.jpg
licenseplate_motion.jpg messi5.jpg ml.png motorcycle_left.png motorcycle_right.png orange.jpg pca_test1.jpg pic2.png pic4.png plant.jpg
retina.jpg right.jpg rocket.jpg rubberwhale1.png rubberwhale2.png scenetext01.jpg scenetext02.jpg scenetext03.jpg scenetext04.jpg
scenetext05.jpg scenetext06.jpg squirrel_cls.jpg stanford.png starry_night.jpg stuff.jpg sudoku.png
""".split()


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    missing = set(NAMES)
    with tempfile.TemporaryDirectory() as work:
        subprocess.run(["apt-get", "download", "-q", *PACKAGES], cwd=work, check=True, stdout=subprocess.DEVNULL)
        for package in pathlib.Path(work).glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, f"{work}/files"], check=True)
        # Of files that have a name in common, the last one that is no part of a page.
        for path in sorted(pathlib.Path(work, "files").rglob("*")):
            if path.name in NAMES and not {"tests", "html"} & set(path.parts) and path.is_file():
                shutil.copyfile(path, target / path.name)
                missing.discard(path.name)
    if missing:
        print(f"not in the packages: {', '.join(sorted(missing))}", file=sys.stderr)
        return 3
    print(f"{len(NAMES)} photos are now in {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
