#!/usr/bin/env python3
"""Images per second of `galvani predict` against PyTorch on the same model, batch and number of threads, in one run.

usage: speed.py GALVANI MODEL.onnx IMAGES.npz

MODEL is the public CIFAR-10 ResNet-20 (option A shortcuts) as ONNX with its weights under PyTorch's names; IMAGES has
`images` [N, 32, 32, 3] uint8, as `galvani data export --to npz` writes it. Both sides convert bytes to normalised floats; PyTorch's model is compiled by
torch.jit.script and runs without gradients. The two take turns; the best of three counts for each.
"""
import re
import subprocess
import sys
import time

import numpy
import onnx
import torch
from onnx import numpy_helper
from torch import nn
from torch.nn import functional

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Block(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.stride, self.extra = stride, (outside - inside) // 2

    def forward(self, x):
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        if self.stride != 1:
            x = functional.pad(x[:, :, ::2, ::2], [0, 0, 0, 0, self.extra, self.extra])
        return functional.relu(y + x)


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = nn.Sequential(*[Block(16, 16, 1) for _ in range(3)])
        self.layer2 = nn.Sequential(Block(16, 32, 2), Block(32, 32, 1), Block(32, 32, 1))
        self.layer3 = nn.Sequential(Block(32, 64, 2), Block(64, 64, 1), Block(64, 64, 1))
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(functional.relu(self.bn1(self.conv1(x))))))
        return self.linear(x.mean([2, 3]))


def torch_rate(model, images, batch):
    mean, std = torch.tensor(MEAN).view(1, 3, 1, 1), torch.tensor(STD).view(1, 3, 1, 1)
    start = time.perf_counter()
    with torch.no_grad():
        labels = [model((images[i:i + batch].float() / 255 - mean) / std).argmax(1) for i in range(0, len(images), batch)]
    return len(images) / (time.perf_counter() - start), torch.cat(labels)


def galvani_rate(binary, model, data, batch, threads):
    command = [binary, "predict", model, "--data", data, "--micro-batch", str(batch), "--threads", str(threads),
               "--mean", ",".join(map(str, MEAN)), "--std", ",".join(map(str, STD)), "-o", data + ".csv"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    with open(data + ".csv") as rows:
        labels = [int(row.split(",")[2]) for row in rows.readlines()[1:]]
    return float(re.search(r"\(([0-9]+) images/s\)", told).group(1)), torch.tensor(labels)


def main():
    binary, path, data = sys.argv[1:4]
    threads = 2
    torch.set_num_threads(threads)
    model = ResNet20().eval()
    weights = {i.name: torch.from_numpy(numpy_helper.to_array(i).copy()) for i in onnx.load(path).graph.initializer}
    model.load_state_dict(weights, strict=False)
    model = torch.jit.script(model)
    images = torch.from_numpy(numpy.load(data)["images"]).permute(0, 3, 1, 2).contiguous()
    print("batch  threads  pytorch/s  galvani/s  ratio  same labels")
    for batch in (16, 64, 128):
        ours, theirs = [], []
        for _ in range(3):
            rate, expected = torch_rate(model, images, batch)
            theirs.append(rate)
            rate, labels = galvani_rate(binary, path, data, batch, threads)
            ours.append(rate)
        agree = (labels == expected).float().mean().item()
        print(f"{batch:5}  {threads:7}  {max(theirs):9.0f}  {max(ours):9.0f}  {max(ours) / max(theirs):5.2f}  {agree:.4%}")


if __name__ == "__main__":
    main()
