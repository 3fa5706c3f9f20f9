#!/usr/bin/env python3
# %% [markdown]
# # The first hour with a model from torch
#
# A small network, trained with PyTorch as anybody would, is looked at with Galvani: how well is it tested, what breaks
# it, how far does a change have to go, which inputs are worth a label, why was a decision made, and can it be repaired?
#
# Debian 12: `./dev python` builds the package (python3-torch is needed for this example alone), then
# `PYTHONPATH=build/python python3 examples/first_hour.py`, or open `first_hour.ipynb`.

# %%
import os
import sys
import tempfile

import numpy as np
import torch

import galvani

QUICK = "--quick" in sys.argv or os.environ.get("FIRST_HOUR") == "quick"  # for the test
folder = tempfile.mkdtemp(prefix="first-hour-")


def show(picture, name):
    """In a notebook the picture itself, elsewhere a file."""
    path = os.path.join(folder, name)
    picture.save(path)
    try:
        get_ipython()
    except NameError:
        print("see", path)
        return
    from IPython.display import display

    display(picture)


# %% [markdown]
# ## A stranger's model
#
# The data are Galvani's built-in digits: no download. `Data` gives NumPy arrays; the training is plain torch.

# %%
train = galvani.Data(f"digits:train[:{2000 if QUICK else 6000}]")
test = galvani.Data("digits:test[:1000]")

torch.manual_seed(0)
module = torch.nn.Sequential(
    torch.nn.Conv2d(1, 8, 5), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Conv2d(8, 16, 5), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Flatten(), torch.nn.Linear(256, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10),
)
images = torch.from_numpy(train[:]).float() / 255
labels = torch.from_numpy(train.labels)
optimizer = torch.optim.Adam(module.parameters(), lr=2e-3)
for epoch in range(2 if QUICK else 4):
    for batch in torch.randperm(len(images)).split(64):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(module(images[batch]), labels[batch])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1}: loss {loss.item():.3f}")

# %% [markdown]
# `from_torch` takes the module as it is. By default bytes 0 to 255 become 0 to 1, which is what it was trained on.

# %%
network = galvani.Network.from_torch(module, images[:1])
found = network.predict(test[:])
print(f"{network.format}, {network.parameters:,} parameters, input {network.input_shape}, {network.classes} classes")
print(f"{(found.predicted == test.labels).mean():.2%} of {len(test)} test images are right")
print("layers that can be observed:", ", ".join(network.select_taps()))

# %% [markdown]
# ## How much of it do the test images exercise?

# %%
for criterion in galvani.cover(network, data=test, train=train, criteria="nc,kmnc,nbc,tknc")["criteria"]:
    print(f"{criterion['id']:5} {criterion['score']:.1%}")

# %% [markdown]
# ## What breaks it?
#
# A campaign changes images in ways that do not change what they show, and keeps those that reach new behaviour. News
# come as it goes on; leaving the loop would stop it, and it could be gone on with.

# %%
run = os.path.join(folder, "run")
for event in galvani.events(galvani.fuzz, network, data=test, guide="nlc", iterations=100 if QUICK else 600, output=run):
    if event["event"] in ("started", "finished", "summary"):
        print(event["event"], "-", event["faults"], "faults,", event["broken_seeds"], "of", event["tried_seeds"], "tried seeds broke")

campaign = galvani.Campaign(run)
faults = campaign.faults(by_turns=True, most=20)
for fault in faults[:5]:
    print(f"{campaign.class_name(fault['label'])} taken for {campaign.class_name(fault['predicted'])}"
          f" ({fault['confidence']:.0%}): {', '.join(campaign.rules(fault['id']))}")
show(galvani.sheet(np.stack([campaign.fault_image(fault["id"]) for fault in faults])), "faults.png")

# %% [markdown]
# Columns are NumPy arrays: how large are the changes that broke it?

# %%
change = campaign.fault_columns()["change"]
print(f"{len(change)} faults; the root mean square of the change is {np.median(change):.3f} of the full scale (median)")

# %% [markdown]
# ## How far does a change on purpose have to go?

# %%
attack = galvani.attack(network, data="digits:test[:100]" if QUICK else "digits:test[:300]", method="pgd:steps=10",
                        eps="0,4/255,8/255,16/255,32/255", output=os.path.join(folder, "adv"),
                        plot=os.path.join(folder, "curve.svg"))
for level in attack["levels"]:
    print(f"eps {level['name']:>6}: accuracy {level['accuracy']:.1%}")
show(galvani.Picture.open(os.path.join(folder, "curve.svg")), "curve.svg")

# %% [markdown]
# ## Which inputs are worth a label?
#
# A pool whose labels are not looked at; the picks are those a person should label first. Here the labels are known, so
# that it can be said how many of the picks are wrong, and how many of the pool.

# %%
pool = galvani.Data("digits:test[1000:2000]")
picked = galvani.select(network, data=pool, train=train, top=30)["selectors"][0]["picks"]
rows = [pick["index"] for pick in picked]
wrong = network.predict(pool[:]).predicted != pool.labels
print(f"wrong among the picks {wrong[rows].mean():.0%}, in the pool {wrong.mean():.1%}")
show(galvani.sheet(pool[rows]), "picks.png")

# %% [markdown]
# ## Why was it decided so?

# %%
neurons = os.path.join(folder, "neurons.json")
galvani.describe(network, data=train, output=neurons)
why = galvani.explain(run, fault=faults[0]["id"], describe=neurons, output=os.path.join(folder, "why.png"))
for row in why["inputs"]:
    print(f"{row['input']}: {row['verdict']} ({row['confidence']:.0%}), because of {row['reasons']}")
show(galvani.Picture.open(os.path.join(folder, "why.png")), "why.png")

# %% [markdown]
# ## Can it be repaired?
#
# Retrained with the faults; the faults of some seeds are held out to measure on, and the same training without any
# faults stands beside it.

# %%
repaired = galvani.repair(network, tests=[run], data=train, clean=test, output=os.path.join(folder, "repaired.pt"))
for measured in repaired["sets"]:
    print(f"{measured['kind']:16}", ", ".join(f"{name} {accuracy:.1%}" for name, accuracy in measured["accuracy"].items()))
again = galvani.Network.load(os.path.join(folder, "repaired.pt"), input="1,28,28")
before = np.stack([campaign.fault_image(fault["id"]) for fault in faults])
right = again.predict(before).predicted == [fault["label"] for fault in faults]
print(f"{right.sum()} of the {len(faults)} faults above are right in the repaired network")
