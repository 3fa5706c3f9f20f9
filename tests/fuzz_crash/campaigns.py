"""What the scripts of this folder share: a small model, and stores as text."""
import os
import pathlib
import sqlite3
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "stand_by"))
from stand_by import Standing  # noqa: E402

DATA = ["--data", "digits:test[0:1000]", "--train", "digits:train[0:1000]"]


def dump(folder):
    """Everything in a campaign's store that does not depend on the clock, as SQL."""
    connection = sqlite3.connect(f"file:{pathlib.Path(folder) / 'campaign.db'}?mode=ro", uri=True)
    try:
        return [line for line in connection.iterdump() if not line.startswith('INSERT INTO "clock"')]
    finally:
        connection.close()


def query(folder, sql):
    connection = sqlite3.connect(f"file:{pathlib.Path(folder) / 'campaign.db'}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


class Workshop:
    def __init__(self, binary, folder, architecture="lenet5", epochs=2):
        self.binary = str(pathlib.Path(binary).resolve())
        self.folder = pathlib.Path(folder)
        self.environment = dict(os.environ, GALVANI_CACHE=str(self.folder / "cache"))
        self.standing = Standing(self.binary)
        self.run("train", architecture, "--data", "digits:train[0:4000]", "--test", "digits:test[0:500]", "--epochs", epochs, "-o",
                 "model.onnx", "-q")

    def start(self, *arguments, **more):
        return subprocess.Popen([self.binary, *map(str, arguments)], cwd=self.folder, env=self.environment, text=True,
                                stdin=subprocess.DEVNULL, **more)

    def run(self, *arguments):
        code, out, err = self.standing.run(arguments, self.folder, self.environment)
        if code != 0:
            raise SystemExit(f"exit {code} of {' '.join(map(str, arguments))}: {err[-1000:]}")
        return out
