#!/usr/bin/env python3
"""Every command that the help texts and README.md show, as a shell would run it, on small files of the names that they use.

usage: tests/e2e/examples.py BINARY [WORDS]                    with WORDS only the commands that contain them
       tests/e2e/examples.py BINARY --prepare FOLDER           makes the files
       tests/e2e/examples.py BINARY --files FOLDER --part I/N  every N-th verb, with files that were made before

The commands of a verb, and those of README.md, run one after the other in a folder of their own: a later one finds what an
earlier one wrote. Prints a line per command, exits 1 if one failed.
"""
import argparse
import glob
import json
import pathlib
import random
import re
import shlex
import shutil
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/hostile"))
from run import Failure, Workshop, expect, npy, text_files, write_wav  # noqa: E402
from torchscript import forward, write_model  # noqa: E402

# Flags that make commands short, by how these begin; they replace those that a command has.
SHORTER = {
    "attack resnet.onnx": "--data cifar10:test[:2]",
    "attack resnet.onnx --data 'cifar10:test[:500]' --eps": "--method pgd:steps=2",
    "attack resnet.onnx --data 'cifar10:test[:500]' --method auto": "--method auto:steps=2,queries=5",
    "calibrate": "--guide nsgen:steps=1",
    "calibrate resnet20.onnx": "--data cifar10:train[:20] --guide nsgen:steps=1,rule=trapezoid",
    "calibrate m.onnx": "--share 1%",
    "describe resnet20.onnx --data cifar10:train --describer": "--data cifar10:train[:10] --layers conv1",
    "excite lenet": "--most 1",
    "excite lenet5.onnx --data": "--by path:points=4,tolerance=0",
    "excite lenet5.onnx --tests": "--by permutation:pairs=4",
    "fuzz lenet5.onnx": "--seeds 20 --energy 8 --iterations 16",
    "fuzz lenet5.onnx --data mnist:test --method deepxplore": "--seeds 4 --energy 1 --iterations 4",
    "fuzz -o run1": "--iterations 32",
    "train": "--epochs 1",
    "train lenet5 --data 'digits:train[0:20000]'": "--data digits:train[:200]",
    "train-captioner": "--neurons 20 --count 2 --epochs 1 --hidden 8 --language 8",
    "train-generator": "--epochs 1 --epoch-images 16 --test mnist:test[:10]",
    "quality lenet5.onnx --tests run1 --clever": "--inputs 2 --batches 5",
    "quality lenet5.onnx --data mnist:test --clever": "--inputs 2 --batches 5",
    "repair": "--epochs 1 --attacked 20",
}


# --- the commands


def commands_of(text):
    """Those of a help text: a line each, which an indented line continues; a remark stands behind several spaces."""
    lines = re.sub(r"\n {3,}", " ", text).splitlines()
    return [line.partition("galvani ")[2].split("   ")[0].strip() for line in lines if line.startswith("  galvani ")]


def commands_of_page(text):
    """Those of the code blocks of a page, with a prompt or without."""
    blocks = "\n".join(re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    lines = [re.sub(r"^(\$ )?galvani ", "  galvani ", line) for line in blocks.splitlines()]
    return commands_of("\n".join(lines))


def all_commands(w):
    """{where they are shown: commands}"""
    found = {"galvani": commands_of(w.done().out)}

    def add(verbs, words):
        for verb in verbs:
            name = [*words, verb["name"]]
            found[" ".join(name)] = commands_of(verb["examples"])
            add(verb["verbs"], name)
    add(json.loads(w.done("help", "--json").out)["verbs"], [])
    found["README.md"] = commands_of_page((ROOT / "README.md").read_text())
    for place, commands in found.items():
        expect(commands, f"{place} shows no command")
    return found


# --- the files


COLOURS = [(250, 30, 30), (30, 250, 30), (30, 30, 250), (250, 250, 30), (250, 30, 250), (30, 250, 250), (250, 250, 250), (20, 20, 20),
           (250, 140, 30), (120, 120, 120)]


def colour_records(count, rng):
    """Images of the CIFAR-10 format that are told apart by their colour."""
    result = bytearray()
    for i in range(count):
        result.append(i % 10)
        for level in COLOURS[i % 10]:
            result += bytes(max(0, min(255, level + rng.randrange(-20, 21))) for _ in range(32 * 32))
    return bytes(result)


def prepare_data(w):
    data = w / "cache/data"
    for rows, split in (("train[0:600]", "train"), ("test[0:200]", "t10k")):
        w.done("data", "export", f"digits:{rows}", "--to", "idx", "-o", data / f"mnist-{split}")
        for path in (data / f"mnist-{split}").iterdir():
            (data / "mnist").mkdir(exist_ok=True)
            path.rename(data / "mnist" / path.name)
        (data / f"mnist-{split}").rmdir()
    rng = random.Random(1)
    (data / "cifar10").mkdir()
    for name, count in [(f"data_batch_{i}", 40) for i in range(1, 6)] + [("test_batch", 40)]:
        (data / "cifar10" / f"{name}.bin").write_bytes(colour_records(count, rng))
    for split, clips in (("train", 4), ("test", 2)):
        for voice in ("ann", "bob"):
            for i in range(clips):
                pitch = 40 + i + 200 * (voice == "bob")
                write_wav(data / f"speakers/{split}/{voice}/{i}.wav", [(n % pitch) * 100 for n in range(48000)], 16000)


def prepare_pictures(w):
    w.done("mutate", "--data", "mnist:test", "--set", "nss", "--one-each", "-o", "pool")
    w.done("mutate", "--data", "mnist:test", "--set", "nss", "--one-each", "-o", "changed.npz")
    for folder, source in (("photos", "mnist:test[:100]"), ("more", "mnist:test[20:60]"), ("pictures/test", "mnist:test[:60]"),
                           ("pictures/train", "mnist:train[:100]"), ("day", "mnist:train[class=1][:20]"),
                           ("night", "mnist:train[class=7][:20]"), ("paintings", "mnist:train[:4]"), ("colour/photos", "cifar10:test[:20]"),
                           ("colour/train", "cifar10:train[:40]")):
        w.done("data", "export", source, "--to", "folder", "-o", folder)
    shutil.copy(next((w / "photos").rglob("*.png")), w / "photo.png")
    annotated = w / "annotated/layer1"
    annotated.mkdir(parents=True)
    pixels = random.Random(2).randbytes(24 * 15 * 3 * 400)
    (annotated / "images.npy").write_bytes(npy([24, 15, 3, 20, 20], "|u1", pixels))
    (annotated / "masks.npy").write_bytes(npy([24, 15, 1, 20, 20], "|u1", bytes(value > 200 for value in pixels[:24 * 15 * 400])))
    (w / "annotated/annotations.csv").write_text("layer,unit,summary\n" + "".join(f"layer1,{unit},thing {unit % 3}\n" for unit in range(24)))


def prepare_models(w):
    # Features of a network that learned nothing are alike for all images, so that the reference refuses none.
    for name, architecture, epochs in (("lenet5", "lenet5", 8), ("lenet1", "lenet1", 8), ("lenet4", "lenet4", 8), ("vgg", "lenet4", 0)):
        w.done("train", architecture, "--data", "mnist", "--epochs", epochs, "-o", f"{name}.onnx")
    w.done("train", "audionet", "--data", "speakers", "--epochs", 0, "-o", "audionet.onnx")
    w.done("train", "resnet20", "--data", "cifar10", "--epochs", 6, "--augment", "none", "-o", "resnet20.onnx")
    for name, of in (("old", "lenet5"), ("new", "lenet4"), ("other", "lenet4"), ("resnet", "resnet20"), ("net", "resnet20"), ("m", "resnet20"), ("foreign", "resnet20"),
                     ("mymodel", "resnet20")):
        shutil.copy(w / f"{of}.onnx", w / f"{name}.onnx")
    for name in ("resnet", "traced"):
        write_model(w / f"{name}.pt", forward("x = torch.relu(x)"))
    text_files(w, "clip")
    shutil.move(w / "clip/m.onnx", w / "clip.onnx")
    w.done("train-generator", "--data", "mnist", "--epochs", 1, "--epoch-images", 16, "--sheets", "none", "-o", "aeg.onnx")
    for model, data, to in (("lenet5", "mnist:train", "neurons.json"), ("resnet20", "cifar10:train", "colour/neurons.json")):
        w.done("describe", f"{model}.onnx", "--data", data, "-o", to)
    w.done("calibrate", "lenet5.onnx", "--describe", "neurons.json", "--data", "mnist:train[:20]")
    w.done("profile", "lenet5.onnx", "--data", "mnist:train", "-o", "lenet5.profile")
    w.done("profile", "lenet5.onnx", "--data", "mnist:train", "--criteria", "kmnc,lsc,dsc", "-o", "p")


def prepare_campaigns(w):
    def campaign(folder, *more, model="lenet5", data="mnist:test", guide="random"):
        w.done("fuzz", f"{model}.onnx", "--data", data, "--guide", guide, "--seeds", 40, "--energy", 16, "--iterations", 40, *more, "-o", folder)
    campaign("run1", "--profile", "lenet5.profile", guide="kmnc")
    campaign("run2", "--seed", 2)
    campaign("run4", model="lenet1")
    campaign("run5", model="lenet4")
    campaign("run9", "--islands", 4)
    for i, place in enumerate(("here", "there"), 1):
        (w / place).mkdir()
        campaign(f"{place}/run10", "--island", f"{i}/2")
    for guide in ("kmnc", "random"):
        for seed in (1, 2, 3):
            campaign(f"{guide}-{seed}", "--seed", seed, *(["--profile", "lenet5.profile"] if guide == "kmnc" else []), guide=guide)
            shutil.copytree(w / f"{guide}-{seed}", w / f"runs/{guide}-{seed}")
    campaign("colour/run1", model="net", data="cifar10:test")
    w.done("attack", "lenet5.onnx", "--data", "mnist:test[:50]", "--eps", "0.3", "-o", "adv")
    shutil.copytree(w / "adv", w / "attack1")
    (w / "accuracy.csv").write_text("measure,a,b\n" + "".join(f"accuracy,{0.9 + i / 100},{0.8 + i * i / 500}\n" for i in range(6)))


def prepare(w):
    for step in (prepare_data, prepare_pictures, prepare_models, prepare_campaigns):
        start = time.monotonic()
        step(w)
        print(f"{time.monotonic() - start:6.1f} s  {step.__name__}")


# Models of colour images have files of their own under the names that commands use.
COLOURED = ("resnet20.onnx", "m.onnx", "net.onnx", "foreign.onnx", "mymodel.onnx")


# --- running them


def shorter(command, words):
    """With the flags of the table, and without most of the built-in data."""
    words = [re.sub(r"^digits(:\w+)?$", r"\g<0>[:200]", word) for word in words]
    flags = [flag for start, flags in SHORTER.items() if command.startswith(start) for flag in flags.split()]
    for flag, value in zip(flags[::2], flags[1::2]):
        if flag in words:
            words[words.index(flag) + 1] = value
        else:
            words += [flag, value]
    return words


def typed(command, folder):
    """The words that a shell makes of it."""
    words = []
    for raw in re.findall(r"(?:'[^']*'|\"[^\"]*\"|\S)+", command):
        found = [] if set(raw) & set("'\"") else sorted(glob.glob(raw, root_dir=folder))
        words += found or shlex.split(raw)
    return words


def run_command(w, files, command):
    words = shorter(command, typed(command, w.folder))
    model = next((word for word in words if word.endswith(".onnx")), "")
    if model in COLOURED:
        shutil.copytree(files / "colour", w.folder, dirs_exist_ok=True)
    # One that says what to do begins anew; one that names its output alone resumes it.
    if "-o" in words and ("--data" in words or not words[1].startswith("-")):
        output = w / words[words.index("-o") + 1]
        shutil.rmtree(output) if output.is_dir() else output.unlink(missing_ok=True)
    result = w.run(*words)
    allowed = (0, 1) if "--fail-if" in words else (0,)
    expect(result.code in allowed, f"exit code {result.code} of {shlex.join(['galvani', *words])}\n        {result.err.strip()[-600:]}")


def away(w):
    """A test for commands that need the network: verbs that fetch, and models that were not fetched."""
    missing = {model["name"] for model in json.loads(w.done("model", "list", "--json").out) if not model["ready"]}
    return lambda command: command.split()[1:2] == ["get"] or bool(missing & set(command.split()))


def run_all(w, files, folder, options):
    needs_network = away(w)
    places = all_commands(w)
    index, parts = map(int, options.part.split("/"))
    ran = skipped = failed = 0
    for place in list(places)[index - 1::parts]:
        w.folder = pathlib.Path(tempfile.mkdtemp(dir=folder))
        for path in files.iterdir():
            if any(path.name in command for command in places[place]):
                (shutil.copytree if path.is_dir() else shutil.copy)(path, w.folder / path.name)
        for command in places[place]:
            if not all(word in command for word in options.words):
                continue
            if needs_network(command):
                skipped += 1
                continue
            ran += 1
            start = time.monotonic()
            try:
                run_command(w, files, command)
                print(f"ok {time.monotonic() - start:6.1f} s  {command}", flush=True)
            except Failure as problem:
                failed += 1
                print(f"FAILED  {place}: {command}\n        {problem}", flush=True)
        shutil.rmtree(w.folder)
    shown = [command for commands in places.values() for command in commands]
    stale = [start for start in SHORTER if not any(command.startswith(start) for command in shown)]
    for entry in stale:
        print(f"FAILED  in the table SHORTER, but nowhere shown: {entry}")
    print(f"{ran} commands ran, {failed} failed; {skipped} need the network")
    return 1 if failed or stale or not ran else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("binary")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--prepare", type=pathlib.Path)
    parser.add_argument("--files", type=pathlib.Path)
    parser.add_argument("--part", default="1/1")
    options = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory(prefix="galvani-examples.") as folder:
        # Campaigns remember where their model lies, so files stay where they were made.
        files = (options.prepare or options.files or pathlib.Path(folder) / "files").resolve()
        w = Workshop(options.binary, files)
        try:
            if not options.files:
                shutil.rmtree(files, ignore_errors=True)
                files.mkdir(parents=True)
                prepare(w)
            return 0 if options.prepare else run_all(w, files, pathlib.Path(folder), options)
        except Failure as problem:
            sys.exit(f"FAILED  {problem}")
        finally:
            w.standing.close()


if __name__ == "__main__":
    sys.exit(main())
