"""What the scripts of this folder share: a job on several processes, and what a campaign left."""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

for folder in ("fuzz_crash", "e2e"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / folder))
from campaigns import Workshop, dump  # noqa: E402

MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
       "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_plm_rsh_agent": "sh"}  # all on this machine, whatever it has


def need_mpi(binary):
    """Exits with 77 (skipped) where there is no mpirun, or the program was built without MPI."""
    linked = subprocess.run(["ldd", binary], capture_output=True, text=True).stdout
    if shutil.which("mpirun") is None or "libmpi" not in linked:
        print("no mpirun, or a build without MPI")
        raise SystemExit(77)


class Job(Workshop):
    def __init__(self, binary, folder):
        super().__init__(binary, folder)
        self.environment.update(MPI)
        self.latest = 3.0  # seconds until a kill; less where campaigns are over by then

    def ranks(self, size, *arguments, launcher=None, **more):
        launcher = launcher or (["mpirun", "-n", str(size)] if size else [])
        return subprocess.Popen([*launcher, self.binary, *map(str, arguments)], cwd=self.folder, env=self.environment, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def done(self, size, *arguments):
        process = self.ranks(size, *arguments)
        out, err = process.communicate(timeout=600)
        if process.returncode != 0:
            raise SystemExit(f"exit {process.returncode} of {size} ranks, {' '.join(map(str, arguments))}: {err[-1500:]}")
        return out

    def until_done(self, sizes, kills, begun, rng: random.Random, *arguments):
        """The command again and again, by random numbers of ranks, until it ends by itself; random ranks are killed, so many in all,
        as a rule while they are at work, which they are when the file `begun` is there."""
        deaths = 0
        while True:
            process = self.ranks(rng.choice(sizes), *arguments)
            if deaths < kills:
                start = time.monotonic()
                while not (self.folder / begun).exists() and process.poll() is None and time.monotonic() < start + 60:
                    time.sleep(0.05)
                time.sleep(rng.uniform(0.2, self.latest))
                at_work = self.processes(process)
                if at_work:
                    os.kill(rng.choice(at_work), signal.SIGKILL)
                    deaths += 1
                else:
                    self.latest = max(0.5, 0.8 * self.latest)
            _, err = process.communicate(timeout=600)
            if process.returncode == 0:
                return deaths
            if deaths >= kills and process.returncode not in (137, -9) and "killed" not in err.lower() and "signal 9" not in err:
                raise SystemExit(f"does not go on: {err[-1000:]}")

    def killed(self, sizes, kills, begun, rng, expected, left, *arguments):
        """Campaigns whose ranks are killed, as many as it takes until so many are; each must leave, by left(name), what is expected."""
        deaths = 0
        for number in range(1, 10 * kills + 2):
            name = f"cut-{number}"
            deaths += self.until_done(sizes, kills - deaths, pathlib.Path(name, begun), rng, *arguments, "-o", name)
            if left(name) != expected:
                raise SystemExit(f"{name}: a campaign whose ranks were killed differs from an undisturbed one")
            if deaths >= kills:
                print(f"{deaths} ranks killed, gone on with by other numbers of ranks: {number} stores equal that of an undisturbed campaign", flush=True)
                return
        raise SystemExit(f"only {deaths} of {kills} kills hit a rank at work")

    def processes(self, started):
        found = subprocess.run(["pgrep", "-f", f"{self.binary} fuzz"], capture_output=True, text=True).stdout.split()
        here = [int(p) for p in found if pathlib.Path(f"/proc/{p}/cwd").exists() and os.readlink(f"/proc/{p}/cwd") == str(self.folder)]
        # mpirun names the program, too.
        return [p for p in here if p != started.pid] or [p for p in here if "mpirun" not in started.args[0]]


def files_of(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in (folder / "faults").rglob("*.*")}


def left_by(folder):
    """All that is to be the same: the store without its clock, and the files of faults."""
    return dump(folder), files_of(folder)
