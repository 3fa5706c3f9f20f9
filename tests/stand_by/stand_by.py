"""The binary, started once and forked for every call (stand_by.cpp): most of a short call is its start."""
import collections
import concurrent.futures
import contextlib
import os
import pathlib
import queue
import signal
import socket
import struct
import subprocess

Result = collections.namedtuple("Result", "code out err")


def library_of(binary):
    """The library (stand_by.cpp) that is built beside the binary."""
    library = pathlib.Path(binary).resolve().parent / "tests/libstand_by.so"
    if not library.exists():
        raise SystemExit(f"{library} is missing: ninja -C {library.parent.parent} stand_by")
    return library


class StandBy:
    """Takes one call at a time."""

    def __init__(self, binary, limit=None, under=("env",)):
        """`under`: a program that starts another with the environment that is named before it, such as `strace -E`."""
        self.binary = str(pathlib.Path(binary).resolve())
        library = library_of(binary)
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(limit)
        command = [*under, f"LD_PRELOAD={library}", self.binary]
        self.process = subprocess.Popen(command, env=dict(os.environ, GALVANI_STAND_BY=str(theirs.fileno())), pass_fds=[theirs.fileno()],
                                        stdin=subprocess.DEVNULL)
        theirs.close()

    def run(self, arguments, folder, environment, output=None):
        """As the binary would run in this folder, its standard output going to the file named, if any; TimeoutError after the limit in
        seconds."""
        ends = [os.pipe(), os.pipe()]
        with open(os.devnull, "rb") as nothing, open(output or os.devnull, "wb") as file:
            self._send(arguments, folder, environment, [nothing.fileno(), file.fileno() if output else ends[0][1], ends[1][1]])
        for _, write in ends:
            os.close(write)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            said = [pool.submit(lambda read=read: open(read, encoding="utf-8").read()) for read, _ in ends]
            code = self._ended()
            return Result(code, *(future.result() for future in said))

    def run_on(self, terminal, arguments, folder, environment):
        """On a terminal, of which this closes our descriptor as soon as the binary has it; the exit code."""
        self._send(arguments, folder, environment, [terminal] * 3)
        os.close(terminal)
        return self._ended()

    def close(self):
        self.socket.close()
        self.process.wait()

    def _send(self, arguments, folder, environment, files):
        command = [self.binary, *map(str, arguments)]
        words = [str(folder), str(len(command)), *command, *(f"{key}={value}" for key, value in environment.items())]
        text = b"".join(os.fsencode(word) + b"\0" for word in words)
        socket.send_fds(self.socket, [struct.pack("=I", len(text))], files)
        self.socket.sendall(text)
        self.number = self._told()

    def _ended(self):
        try:
            return os.waitstatus_to_exitcode(self._told())
        except TimeoutError:
            os.kill(self.number, signal.SIGKILL)
            self._told()
            raise

    def _told(self):
        text = b""
        while len(text) < 4:
            part = self.socket.recv(4 - len(text))
            if not part:
                raise RuntimeError("the binary that stands by has ended")
            text += part
        return struct.unpack("=i", text)[0]


class Standing:
    """As many as there are calls at a time."""

    def __init__(self, binary, limit=None):
        self._start = lambda: StandBy(binary, limit)
        self._free = queue.SimpleQueue()

    def run(self, *call, **more):
        with self._one() as one:
            return one.run(*call, **more)

    def run_on(self, *call):
        with self._one() as one:
            return one.run_on(*call)

    @contextlib.contextmanager
    def _one(self):
        try:
            one = self._free.get_nowait()
        except queue.Empty:
            one = self._start()
        try:
            yield one
        finally:
            self._free.put(one)

    def close(self):
        while not self._free.empty():
            self._free.get().close()
