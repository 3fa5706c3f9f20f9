#!/usr/bin/env python3
"""A Slurm of one node, in a temporary folder: a campaign under srun is that of one process, and so are islands as a job array.

usage: tests/cluster/slurm.py GALVANI

Wants root and Debian's slurm-wlm and munge; exits with 77 (skipped) where one of them is missing, or the program was built without MPI.
"""
import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from jobs import Job, left_by, need_mpi
from campaigns import DATA

ISLANDS = 3
SETTINGS = ["fuzz", "model.onnx", *DATA, "--guide", "kmnc", "--seeds", 100, "--seed", 7, "--threads", 1, "-q", "--iterations", 96]
CONFIGURATION = """
ClusterName=galvani
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
"""


def need_slurm():
    missing = [name for name in ("slurmctld", "slurmd", "munged", "srun", "sbatch") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        print(f"no {', '.join(missing)}" if missing else "not root")
        raise SystemExit(77)


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Slurm:
    """Its daemons, as children that end with it."""

    def __init__(self, folder):
        self.folder = folder
        self.daemons = []
        for name in ("state", "spool"):
            (folder / name).mkdir()
        key = folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        host = socket.gethostname().split(".")[0]
        text = CONFIGURATION.format(host=host, folder=folder, ports=free_ports(2), cpus=os.cpu_count())
        (folder / "slurm.conf").write_text(text.lstrip())
        self.environment = dict(os.environ, SLURM_CONF=str(folder / "slurm.conf"))
        self.start("munged", "--foreground", "--force", f"--socket={folder}/munge.socket", f"--key-file={key}", f"--pid-file={folder}/munged.pid",
                   f"--log-file={folder}/munged.log", f"--seed-file={folder}/munge.seed")
        self.wait_for(lambda: (folder / "munge.socket").exists(), "munged")
        self.start("slurmctld", "-D", "-c")
        self.start("slurmd", "-D", "-N", host)
        self.wait_for(lambda: "idle" in self.says("sinfo", "-h", "-o", "%T"), "a node")

    def start(self, *words):
        log = open(self.folder / f"{words[0]}.out", "w")
        self.daemons.append(subprocess.Popen(words, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def says(self, *words):
        return subprocess.run(words, env=self.environment, capture_output=True, text=True).stdout

    def wait_for(self, there, what):
        end = time.monotonic() + 60
        while not there():
            if time.monotonic() > end:
                logs = "".join(p.read_text(errors="replace")[-800:] for p in self.folder.glob("*.log")) + "".join(p.read_text()[-400:] for p in self.folder.glob("*.out"))
                self.stop()
                raise SystemExit(f"{what} does not come up:\n{logs}")
            time.sleep(0.2)

    def stop(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(20)


def under_srun(job, slurm):
    """Which --mpi works, and that two tasks leave what one process leaves."""
    offered = slurm.says("srun", "--mpi=list")
    kinds = [kind for kind in ("pmix", "pmi2") if kind in offered]
    job.done(0, *SETTINGS, "-o", "alone")
    worked = []
    for kind in kinds:
        said = subprocess.run(["srun", f"--mpi={kind}", "-n", "2", job.binary, *map(str, SETTINGS), "-o", f"srun-{kind}"], cwd=job.folder,
                              env=dict(job.environment, SLURM_CONF=slurm.environment["SLURM_CONF"]), capture_output=True, text=True, timeout=300)
        if said.returncode != 0:
            print(f"srun --mpi={kind} -n 2: exit {said.returncode}: {said.stderr.strip().splitlines()[-1:]}", flush=True)
            continue
        if left_by(job.folder / f"srun-{kind}") != left_by(job.folder / "alone"):
            raise SystemExit(f"two tasks under srun --mpi={kind} leave something else than one process")
        worked.append(kind)
        print(f"srun --mpi={kind} -n 2: the same store and files as of one process", flush=True)
    if not worked:
        raise SystemExit(f"no kind of MPI that this Slurm offers works: {offered}")


def as_array(job, slurm):
    job.done(0, *SETTINGS, "--islands", ISLANDS, "--exchange", 0, "-o", "silent")
    words = " ".join(f"'{w}'" for w in SETTINGS)
    script = f"#!/bin/sh\nexec {job.binary} {words} --island $SLURM_ARRAY_TASK_ID/{ISLANDS} -o array\n"
    said = subprocess.run(["sbatch", "--wait", f"--array=1-{ISLANDS}", "--output=array-%a.out", "/dev/stdin"], input=script, cwd=job.folder,
                          env=dict(job.environment, SLURM_CONF=slurm.environment["SLURM_CONF"]), capture_output=True, text=True, timeout=300)
    if said.returncode != 0:
        raise SystemExit(f"sbatch: exit {said.returncode}: {said.stderr}" + "".join(p.read_text() for p in job.folder.glob("array-*.out")))
    for i in range(1, ISLANDS + 1):
        if left_by(job.folder / "array" / f"island-{i}") != left_by(job.folder / "silent" / f"island-{i}"):
            raise SystemExit(f"island {i} as a job of its own differs from that of one process")
    job.run("merge", "array", "-o", "merged", "-q")
    if not json.loads(job.run("check", "merged", "--json"))["sound"]:
        raise SystemExit("the merged array is damaged")
    faults = json.loads(job.run("stats", "merged", "--json"))["faults"]
    print(f"sbatch --array=1-{ISLANDS}: the islands of one process, merged and sound, {faults} faults", flush=True)


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__.strip())
    binary = pathlib.Path(sys.argv[1]).resolve()
    need_mpi(binary)
    need_slurm()
    with tempfile.TemporaryDirectory(prefix="galvani-slurm.") as folder:
        job = Job(binary, pathlib.Path(folder).resolve())
        place = job.folder / "slurm"
        place.mkdir(mode=0o755)
        slurm = Slurm(place)
        try:
            under_srun(job, slurm)
            as_array(job, slurm)
        finally:
            slurm.stop()


if __name__ == "__main__":
    main()
