#!/usr/bin/env python3
"""TorchScript files that try to write, read or run what is not theirs.

usage: tests/hostile/torchscript.py BINARY [WORDS]    with WORDS only the files whose names contain them

Each is given to `galvani predict` twice. As it is: it must be refused with exit code 3 and one sentence, and may not
open any file for writing but the cache's. Then with the list of operators switched off (GALVANI_TRUST_MODELS=1): now it
may run, but the second wall, Landlock, must keep every file as it was and let no program start; skipped where the kernel
has no Landlock. strace shows what was opened and how often the wall said no.
"""
import concurrent.futures
import ctypes
import os
import pathlib
import re
import shutil
import sys
import tempfile
import threading
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "stand_by"))
from stand_by import StandBy  # noqa: E402

SECONDS = 120

HEADER = """class M(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
"""
BENIGN = """  def forward(self: __torch__.M,
    x: Tensor) -> Tensor:
    return torch.slice(torch.flatten(x, 1, -1), 1, 0, 10, 1)
"""


def forward(*lines):
    """A model that does the given lines first; EVIL in them is the file to write, SECRET the one to read."""
    body = "".join(f"    {line}\n" for line in lines)
    return HEADER + ("  def forward(self: __torch__.M,\n    x: Tensor) -> Tensor:\n" + body +
                     "    return torch.slice(torch.flatten(x, 1, -1), 1, 0, 10, 1)\n")


def using(value, *lines):
    """The same, where the result depends on what the lines made."""
    return forward(*lines, f"x = torch.add(x, torch.sum({value}))")


def with_class(extra, *lines):
    return forward(*lines) + extra


SMALL = """class Small:
  a : int
  def __init__(self: __torch__.Small) -> NoneType:
    self.a = 1
    return None
"""
LARGE = "class Large:\n" + "".join(f"  {name} : int\n" for name in "abcde") + "  def __init__(self: __torch__.Large) -> NoneType:\n" + \
    "".join(f"    self.{name} = 1\n" for name in "abcde") + "    return None\n"

# Writes the shell script into a mapped file: the shape of the attack that once worked.
# LibTorch drops what nobody needs, so results are used.
MAP = 'a = torch.from_file("EVIL", True, 16, dtype=0, layout=0, device=torch.device("cpu"), pin_memory=False)'

CASES = {
    # torch.save, spelled in every way the grammar allows
    "save": forward('torch.save(x, "EVIL")'),
    "save with a space": forward('torch.save (x, "EVIL")'),
    "save with spaces around the dot": forward('torch . save(x, "EVIL")'),
    "save with a tab": forward('torch.save\t(x, "EVIL")'),
    "save over a line break": forward("torch.save(", '  x, "EVIL")'),
    "save after a backslash": forward('torch.save\\', '(x, "EVIL")'),
    "save in parentheses": forward('(torch.save)(x, "EVIL")'),
    "save by alias": forward("f = torch.save", 'f(x, "EVIL")'),
    "save by alias of alias": forward("f = torch.save", "g = f", 'g(x, "EVIL")'),
    "save by alias of torch": forward("t = torch", 't.save(x, "EVIL")'),
    "save as a method": forward('x.save("EVIL")'),
    "save through ops.aten": forward('ops.aten.save(x, "EVIL")'),
    "save through torch.ops": forward('torch.ops.aten.save(x, "EVIL")'),
    "save through an alias of ops": forward("o = ops.aten", 'o.save(x, "EVIL")'),
    "save of a number": forward('torch.save(1, "EVIL")'),
    "save of text": forward('torch.save("#!/bin/sh", "EVIL")'),
    "save of a list": forward('torch.save([x, x], "EVIL")'),
    "save to a name made of parts": forward('n = torch.add("EV", "IL")', "torch.save(x, n)"),
    "save in a branch": forward("if torch.gt(torch.size(x, 0), 0):", '  torch.save(x, "EVIL")', "else:", "  pass"),
    "save in a branch that is never taken": forward("if torch.gt(torch.dim(x), 9):", '  torch.save(x, "EVIL")', "else:", "  pass"),
    "save in a loop": forward("for i in range(3):", '  torch.save(x, "EVIL")'),
    "save in a while loop": forward("i = 0", "while torch.lt(i, 2):", "  i = torch.add(i, 1)", '  torch.save(x, "EVIL")'),
    "save from the second call on": HEADER + """  n : Tensor
  def forward(self: __torch__.M,
    x: Tensor) -> Tensor:
    n = torch.add_(self.n, 1)
    if bool(torch.gt(n, 3)):
      torch.save(x, "EVIL")
    else:
      pass
    return torch.slice(torch.flatten(x, 1, -1), 1, 0, 10, 1)
""",
    "save in a condition": forward('y = x if torch.save(x, "EVIL") is None else x'),
    "save in an assertion's message": forward('assert torch.gt(torch.size(x, 0), 0), str(torch.save(x, "EVIL"))'),
    "save in a list": forward('y = [torch.save(x, "EVIL")]'),
    "save in a comprehension": forward('y = [torch.save(x, "EVIL") for i in range(2)]'),
    "save in a function": with_class("""def helper(x: Tensor) -> Tensor:
  torch.save(x, "EVIL")
  return x
""", "x = __torch__.helper(x)"),
    "save in a nested function": with_class("""def helper(x: Tensor) -> Tensor:
  return __torch__.inner(x)
def inner(x: Tensor) -> Tensor:
  torch.save(x, "EVIL")
  return x
""", "x = __torch__.helper(x)"),
    "save in another method": forward('x = (self).other(x, )') + """  def other(self: __torch__.M,
    x: Tensor) -> Tensor:
    torch.save(x, "EVIL")
    return x
""",
    "save in a method that nobody calls": HEADER + BENIGN + """  def other(self: __torch__.M,
    x: Tensor) -> Tensor:
    torch.save(x, "EVIL")
    return x
""",
    "save in the constructor of a class": with_class("""class Helper:
  n : int
  def __init__(self: __torch__.Helper) -> NoneType:
    self.n = 1
    torch.save(1, "EVIL")
    return None
""", "h = __torch__.Helper.__new__(__torch__.Helper)", "_0 = (h).__init__()"),
    "save in a context manager": with_class("""class Helper:
  n : int
  def __init__(self: __torch__.Helper) -> NoneType:
    self.n = 1
    return None
  def __enter__(self: __torch__.Helper) -> int:
    torch.save(1, "EVIL")
    return 1
  def __exit__(self: __torch__.Helper,
    a: Any,
    b: Any,
    c: Any) -> NoneType:
    return None
""", "h = __torch__.Helper.__new__(__torch__.Helper)", "_0 = (h).__init__()", "with h:", "  pass"),
    "save in an operator of a class": with_class("""class Helper:
  n : int
  def __init__(self: __torch__.Helper) -> NoneType:
    self.n = 1
    return None
  def __lt__(self: __torch__.Helper,
    other: __torch__.Helper) -> bool:
    torch.save(1, "EVIL")
    return True
""", "h = __torch__.Helper.__new__(__torch__.Helper)", "_0 = (h).__init__()", "b = h < h", "if b:", "  x = torch.relu(x)", "else:", "  pass"),
    # what runs while a file is loaded
    "save in __setstate__": HEADER + BENIGN + """  def __setstate__(self: __torch__.M,
    state: Dict[str, bool]) -> NoneType:
    self.training = False
    torch.save(1, "EVIL")
    return None
  def __getstate__(self: __torch__.M) -> Dict[str, bool]:
    return {"training": False}
""",
    "save in a default value": HEADER + """  def forward(self: __torch__.M,
    x: Tensor,
    y: NoneType=torch.save(1, "EVIL")) -> Tensor:
    return torch.slice(torch.flatten(x, 1, -1), 1, 0, 10, 1)
""",
    "save in a function's default value": with_class("""def helper(x: Tensor, n: NoneType=torch.save(1, "EVIL")) -> Tensor:
  return x
""", "x = __torch__.helper(x)"),
    "save in a class constant": HEADER + '  c : Final[NoneType] = torch.save(1, "EVIL")\n' + BENIGN,
    "save in a class constant of another class": with_class("""class Helper(Module):
  __parameters__ = []
  __buffers__ = []
  c : Final[NoneType] = torch.save(1, "EVIL")
  def forward(self: __torch__.Helper,
    x: Tensor) -> Tensor:
    return x
""", "y : Optional[__torch__.Helper] = None"),
    "save in a default of a named tuple": with_class("""class Pair(NamedTuple):
  a : NoneType = torch.save(1, "EVIL")
""", "p : Optional[__torch__.Pair] = None"),
    # mapped files, out=
    "from_file": using("a", MAP),
    "from_file with a space": using("a", MAP.replace("from_file(", "from_file (")),
    "from_file by alias": using("a", "f = torch.from_file", MAP.replace("torch.from_file", "f")),
    "from_file, written in place": using("b", MAP, "b = torch.fill_(a, 35)"),
    "from_file, written by out=": using("b", MAP, "b = torch.add(a, a, alpha=1, out=a)"),
    "from_file, written by copy": using("b", MAP, "b = torch.copy_(a, torch.zeros([16], dtype=0), False)"),
    "from_file, written by an index": using("b", MAP, "b = torch.zero_(torch.slice(a, 0, 0, 4, 1))"),
    "from_file in a branch": using("a", "a = x", "if torch.gt(torch.dim(x), 9):", "  " + MAP, "else:", "  pass"),
    "from_file reads": using("a", 'a = torch.from_file("SECRET", False, 8, dtype=0, layout=0, device=torch.device("cpu"), '
                               "pin_memory=False)"),
    "out= without a file": forward("y = torch.add(x, x, alpha=1, out=x)"),
    "out= of mul": forward("y = torch.mul(x, x, out=x)"),
    # strides and storages
    "_reshape_alias": forward("y = torch._reshape_alias(x, [1000000], [1000])", "z = torch.fill_(y, 1.)"),
    "as_strided": forward("y = torch.as_strided(x, [1000000], [1000], 0)", "z = torch.fill_(y, 1.)"),
    "as_strided with a space": using("y", "y = torch . as_strided (x, [1000000], [1000], 0)"),
    "as_strided_": using("y", "y = torch.as_strided_(x, [1000000], [1000], 0)"),
    "as_strided as a method": using("y", "y = x.as_strided([1000000], [1000], 0)"),
    "set_": using("y", "y = torch.set_(x, x)"),
    "resize_": using("y", "y = torch.resize_(x, [1000])"),
    "empty_strided": using("y", "y = torch.empty_strided([10], [1000000])"),
    "new_empty_strided": using("y", "y = torch.new_empty_strided(x, [10], [1000000])"),
    "_index_put_impl_": forward("i = annotate(List[Optional[Tensor]], [torch.tensor([1000000])])",
                                "y = torch._index_put_impl_(x, i, x, False, True)"),
    "sort of a list": forward("l = [1., 2., 3.]", "_0 = torch.sort(l, False)", "x = torch.add(x, l[0])"),
    "a list of the model's own": HEADER + """  items : List[int]
  def forward(self: __torch__.M,
    x: Tensor) -> Tensor:
    _0 = torch.append(self.items, 1)
    return torch.slice(torch.flatten(x, 1, -1), 1, 0, 10, 1)
""",
    "an attribute of the model's own": HEADER + """  def forward(self: __torch__.M,
    x: Tensor) -> Tensor:
    self.training = True
    return torch.slice(torch.flatten(x, 1, -1), 1, 0, 10, 1)
""",
    # other places
    "print": forward('print("hello")'),
    "fork": with_class("""def helper(x: Tensor) -> Tensor:
  return torch.relu(x)
""", "f = fork(__torch__.helper, x)", "x = wait(f)"),
    "prim ops": forward("ops.prim.AddStatValue(\"a\", 1)"),
    "quantised operators": using("y", "y = ops.quantized.relu6(x, False)"),
    "a class of C++": forward('r = ops.profiler._record_function_enter_new("a", None)', "_0 = ops.profiler._record_function_exit(r)"),
    "the profiler": using("r", 'r = ops.profiler._record_function_enter("a", None)'),
    "collective communication": forward("y = ops.c10d.barrier(x)"),
    "meta tensors": using("y", 'y = torch.zeros([2], dtype=6, layout=0, device=torch.device("meta"))'),
    "sparse tensors": using("y", "y = torch.zeros([2], dtype=6, layout=1)"),
    "a quantised type": using("y", "y = torch.empty([2], dtype=12)"),
    "manual_seed": forward("torch.manual_seed(1)"),
    # values taken for what they are not
    "a number taken for a tensor": using("y", "y = unchecked_cast(Tensor, 4702111234474983745)"),
    "a tensor taken for a list": forward("l = unchecked_cast(List[int], x)", "x = torch.add(x, l[0])"),
    "a short tuple as a long one": forward("t = unchecked_cast(Tuple[int, int, int, int], (1,))", "_, _, _, n = t", "x = torch.add(x, n)"),
    "an object taken for a larger one": with_class(SMALL + LARGE, "s = __torch__.Small.__new__(__torch__.Small)", "_0 = (s).__init__()",
                                                   "l = unchecked_cast(__torch__.Large, s)", "x = torch.add(x, l.e)"),
    "a pickled text for a number": HEADER + "  number : int\n" + BENIGN.replace("torch.flatten(x, 1, -1)", "torch.flatten(torch.add(x, self.number), 1, -1)"),
    "a pickled tuple that is too short": HEADER + "  pair : Tuple[int, int, int]\n" +
                                         BENIGN.replace("torch.flatten(x, 1, -1)", "torch.flatten(torch.add(x, (self.pair)[2]), 1, -1)"),
    "a pickled list of something else": HEADER + "  texts : List[Tensor]\n" +
                                        BENIGN.replace("torch.flatten(x, 1, -1)", "torch.flatten(torch.add(x, (self.texts)[0]), 1, -1)"),
    "a pickled object of another class": HEADER + "  other : __torch__.Large\n" +
                                         BENIGN.replace("torch.flatten(x, 1, -1)", "torch.flatten(torch.add(x, self.other.e), 1, -1)") + SMALL + LARGE,
    # numbers beyond a count's memory, and results that no run repeats
    "bincount": using("y", "y = torch.bincount(torch.tensor([9223372036854775807]), None, 0)"),
    "dropout in training mode": forward("x = torch.dropout(x, 0.5, True)"),
    "dropout in a branch, in training mode": forward("if bool(torch.gt(torch.sum(x), -1.)):", "  x = torch.dropout(x, 0.5, True)", "else:", "  pass"),
    "random numbers": using("y", "y = torch.rand_like(x)"),
    "random draws": using("y", "y = torch.bernoulli(torch.sigmoid(x))"),
    "random choices": using("y", "y = torch.multinomial(torch.sigmoid(torch.flatten(x, 1, -1)), 1, False)"),
}


# What the sentence has to say of a case whose name contains the word.
SENTENCES = {"taken for": "for one of type", "pickled": "is damaged: its attribute", "bincount": "aten::bincount, which is not on the list",
             "training mode": "dropout left in training mode (aten::dropout), so every run would give other results; call model.eval() before torch.jit.trace",
             "random": "draws random numbers"}


def pickle_of(case):
    """The module's state: every attribute that the code declares, `training` among them."""
    state = b"X\x08\x00\x00\x00training\x89"
    if "items : List[int]" in case:
        state += b"X\x05\x00\x00\x00items" + b"ctorch.jit._pickle\nbuild_intlist\n](K\x01e\x85R"
    if "n : Tensor" in case:
        state += (b"X\x01\x00\x00\x00n" + b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
                  b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x01tQK\x00))\x89NtR")
    for declared, wrong in {"number : int": b"X\x03\0\0\0abc", "pair : Tuple": b"K\x01\x85", "texts : List": b"](X\x03\0\0\0abce",
                            "other : ": b"c__torch__\nSmall\n)\x81}(X\x01\0\0\0aK\x01ub"}.items():
        if f"  {declared}" in case.split("  def ")[0]:
            name = declared.split(" ")[0].encode()
            state += b"X" + bytes([len(name)]) + b"\0\0\0" + name + wrong
    return b"\x80\x02c__torch__\nM\n)\x81}(" + state + b"ub."


def write_model(path, code):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/version", "3\n")
        archive.writestr("m/constants.pkl", b"\x80\x02).")
        archive.writestr("m/data.pkl", pickle_of(code))
        archive.writestr("m/data/0", b"\0\0\0\0")
        archive.writestr("m/code/__torch__.py", code)


def landlock():
    return ctypes.CDLL(None).syscall(444, None, 0, 1) >= 2


class Traced:
    """The binary standing by, under strace where there is one."""

    CALLS = "trace=open,openat,creat,rename,renameat2,link,linkat,mkdir,execve"

    def __init__(self, binary, folder):
        self.traces = pathlib.Path(tempfile.mkdtemp(dir=folder))
        strace = shutil.which("strace")
        under = [strace, "-ff", "--seccomp-bpf", "-qq", "-e", self.CALLS, "-o", str(self.traces / "of"), "-E"] if strace else ["env"]
        self.binary = StandBy(binary, SECONDS, under)

    def run(self, arguments, folder, environment):
        """How it ended, and the lines of strace."""
        begun = set(self.traces.iterdir())
        result = self.binary.run(arguments, folder, environment)
        lines = []
        for trace in set(self.traces.iterdir()) - begun:
            lines += trace.read_text(errors="replace").splitlines()
            trace.unlink()
        return result, lines


class Trial:
    def __init__(self, traced, folder):
        self.traced = traced
        self.folder = pathlib.Path(folder)
        self.cache = self.folder / "cache"
        self.secret = self.folder / "secret"
        self.secret.write_text("secret!!")

    def contents(self):
        return {str(p.relative_to(self.folder)): p.read_bytes() if p.is_file() else None
                for p in sorted(self.folder.rglob("*")) if self.cache not in p.parents and p != self.cache}

    def run(self, model, trusted):
        """Exit code, standard error, files opened for writing, how often a write or a start was denied."""
        environment = dict(os.environ, GALVANI_CACHE=str(self.cache), GALVANI_LOAD_SECONDS="60")
        if trusted:
            environment["GALVANI_TRUST_MODELS"] = "1"
        command = ["predict", str(model), "--data", "digits:test[0:2]", "--input", "1,28,28", "-q"]
        result, calls = self.traced.run(command, self.folder, environment)
        written, denied = [], 0
        for line in calls:
            if not re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|creat\(|rename|link", line) or "/readlink" in line:
                continue
            if "EACCES" in line or "EPERM" in line:
                denied += 1
            elif " = -1 " not in line and str(self.cache) not in line and "/dev/null" not in line:
                written.append(line)
        return result.code, result.err, written, denied


def try_case(traced, code, says=""):
    """What is wrong with it, what was said, and whether the second wall was reached."""
    wrong = []
    with tempfile.TemporaryDirectory(prefix="galvani-hostile.") as folder:
        trial = Trial(traced, folder)
        evil = str(trial.folder / "evil")
        code = code.replace('"EV", "IL"', f'"{evil[:9]}", "{evil[9:]}"').replace("EVIL", evil)
        write_model(trial.folder / "model.pt", code.replace("SECRET", str(trial.secret)))
        before = trial.contents()
        status, err, written, _ = trial.run(trial.folder / "model.pt", False)
        lines = [line for line in err.splitlines() if not line.startswith("warning:")]
        if status != 3 or len(lines) != 1:
            wrong.append(f"exit {status}, {err[-300:]!r}")
        elif says not in lines[0]:
            wrong.append(f"it does not say {says!r}, but {lines[0]!r}")
        if trial.contents() != before:
            wrong.append("files were changed")
        if written:
            wrong.append(f"opened for writing: {written[0]}")
        denied = 0
        if landlock():
            _, err, written, denied = trial.run(trial.folder / "model.pt", True)
            if trial.contents() != before:
                wrong.append("without the list, files were changed")
            if written:
                wrong.append(f"without the list, opened for writing: {written[0]}")
    return wrong, lines[0].split("model.pt: ")[-1][:120] if lines else "", denied > 0


def sentence_of(name):
    return next((sentence for word, sentence in SENTENCES.items() if word in name), "")


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__.strip())
    binary, words = sys.argv[1], " ".join(sys.argv[2:])
    cases = {name: code for name, code in CASES.items() if words in name}
    own = threading.local()
    failures, walls = 0, 0
    with (tempfile.TemporaryDirectory(prefix="galvani-traces.") as traces,
          concurrent.futures.ThreadPoolExecutor(os.cpu_count(), initializer=lambda: setattr(own, "traced", Traced(binary, traces))) as pool):
        # What the others are compared with: a file that does no harm is taken.
        wrong, _, _ = pool.submit(lambda: try_case(own.traced, HEADER + BENIGN)).result()
        if wrong != ["exit 0, ''"]:
            raise SystemExit(f"a harmless model is not taken: {wrong}")
        for name, (wrong, sentence, wall) in zip(cases, pool.map(lambda name: try_case(own.traced, cases[name], sentence_of(name)), cases)):
            failures += bool(wrong)
            walls += wall
            print(f"FAILED {name}: {'; '.join(wrong)}" if wrong else f"ok {name}: {sentence}", flush=True)
    said = (f"without the list the second wall said no to {walls} of them" if landlock() else
            "this kernel has no Landlock: the second wall was not tried")
    print(f"{len(cases)} hostile files, {failures} failures; {said}")
    if shutil.which("strace") and landlock() and not words and walls < 20:
        raise SystemExit("too few of them reach the second wall: the attacks do not work any more")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
