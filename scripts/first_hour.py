#!/usr/bin/env python3
"""Runs the commands of docs/first-hour.md once more, on a folder of photos and models made for it, and writes down what they say.

usage: scripts/first_hour.py GALVANI RESNET20.onnx [--page PAGE]

RESNET20.onnx is a ResNet-20 for CIFAR-10 that says nothing of its preprocessing. Needs Debian's python3-torch, python3-torchvision, python3-onnx and
python3-pil. In the page, what follows a line `$ galvani ...` inside a fence is replaced.
"""
import argparse
import csv
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import torch
import torchvision
from PIL import Image

WIDTH = 168
PHOTOS = 120


class LeNet(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Conv2d(1, 6, 5, padding=2), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Conv2d(6, 16, 5), torch.nn.ReLU(),
                         torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(400, 120), torch.nn.ReLU(), torch.nn.Linear(120, 10))


def make_photos(galvani, folder):
    """The first test images of CIFAR-10, enlarged to photos as people have them: formats, sizes, one gray, one with alpha, one turned, odd names."""
    subprocess.run([galvani, "data", "export", f"cifar10:test[0:{PHOTOS}]", "--to", "folder", "-o", "small", "-q"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)
    endings = [".jpg", ".png", ".webp", ".bmp", ".tiff"]
    sizes = [(320, 320), (96, 96), (240, 160), (160, 160), (426, 320), (200, 300)]
    for i, row in enumerate(csv.DictReader((folder / "small" / "labels.csv").open())):
        image = Image.open(folder / "small" / row["file"]).convert("RGB")
        width, height = sizes[i % len(sizes)] if i % 7 == 0 else sizes[0]
        # The picture stays whole in the middle; what a centre crop takes away is its blurred border.
        side = min(width, height)
        photo = image.resize((width, height), Image.BICUBIC)
        photo.paste(image.resize((side, side), Image.BICUBIC), ((width - side) // 2, (height - side) // 2))
        name = {11: "schön", 23: "mit Leerzeichen", 31: "Ärger über Grün"}.get(i, f"IMG_{1000 + i}")
        ending = endings[i % len(endings)] if i % 3 == 0 else ".jpg"
        more = {"quality": 95} if ending in (".jpg", ".webp") else {}
        if i == 5:
            photo = photo.convert("L")
        elif i == 6:
            ending, more = ".png", {}
            photo.putalpha(255)
        elif i == 7:
            ending, exif = ".jpg", Image.Exif()
            exif[0x0112] = 6  # to be turned by a quarter when shown
            photo, more = photo.transpose(Image.ROTATE_90), {"quality": 95, "exif": exif}
        target = folder / "photos" / row["label"].capitalize()
        target.mkdir(parents=True, exist_ok=True)
        photo.save(target / (name + ending), **more)
    whole = next((folder / "photos" / "Cat").glob("*.jpg")).read_bytes()
    (folder / "photos" / "Cat" / "broken.jpg").write_bytes(whole[:100])
    shutil.rmtree(folder / "small")


def make_models(resnet20, folder):
    torch.manual_seed(1)
    shutil.copy(resnet20, folder / "r20.onnx")
    mobilenet = torchvision.models.mobilenet_v2().eval()
    torch.jit.trace(mobilenet, torch.rand(1, 3, 224, 224)).save(str(folder / "mobilenet.pt"))
    torch.onnx.export(LeNet().eval(), torch.rand(1, 1, 28, 28), str(folder / "lenet-torch.onnx"), opset_version=13)


def said(command, galvani, folder):
    """What a command says, as the page shows it."""
    environment = dict(os.environ, PATH=f"{galvani.parent}:{os.environ['PATH']}", COLUMNS=str(WIDTH), NO_COLOR="1")
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = done.stdout.replace(str(folder), "~").rstrip().splitlines()
    lines = [line if len(line) <= WIDTH else line[:WIDTH - 1] + "…" for line in lines]
    return lines + ([f"(exit code {done.returncode})"] if done.returncode else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("galvani", type=pathlib.Path)
    parser.add_argument("resnet20", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent / "docs" / "first-hour.md")
    options = parser.parse_args()
    galvani = options.galvani.resolve()
    with tempfile.TemporaryDirectory() as where:
        folder = pathlib.Path(where).resolve()
        make_photos(galvani, folder)
        make_models(options.resnet20.resolve(), folder)

        def again(block):
            command = block.group(1)
            print(f"$ {command}", flush=True)
            return "\n".join(["```", f"$ {command}", *said(command, galvani, folder), "```"])

        page = options.page.read_text()
        options.page.write_text(re.sub(r"^```\n\$ (galvani .*)\n(?:.*\n)*?```$", again, page, flags=re.MULTILINE))


if __name__ == "__main__":
    main()
