#!/usr/bin/env python3
"""DeepSensor: do excitable neurons guide a search to faults? The tables of Jin et al. (2022) for images and speech, with controls.

usage: ./dev study deepsensor --scale smoke|small|paper        docs/studies.md says what is done and why

This file makes the measurements; deepsensor_results.py makes tables of them.
"""
import csv
import dataclasses
import statistics

import common
import deepsensor_results

POLLUTED_CLASS = 1
SHARES = ("0.1", "0.2", "0.3")  # of polluted training images
RIVALS = ("deepxplore", "dlfuzz", "deephunter")
# Which fitness, which search: what the guide is compared with, at its cost in passes.
GUIDED = ("swarm-loss", "genetic-loss", "genetic-excitable", "noise", "corners", "pgd")


@dataclasses.dataclass(frozen=True)
class Amounts:
    data: str
    model: str
    train: int        # images
    epochs: int       # of a well-trained model
    over: tuple       # slice and epochs of an over-fitted one
    under: tuple      # of an under-fitted one
    tests: int        # inputs that are changed: those of so many that the model gets right
    clean: int        # test images for accuracy
    eps: str          # how far a value may be changed
    small_eps: str    # at which some inputs stand
    population: int
    generations: int
    points: int       # of the path that values of neurons are integrated along
    repeats: int      # models, each trained from a seed of its own
    few: int          # of them for parameters and retraining
    lambdas: tuple    # of figure 10, besides 0.01
    untils: tuple     # besides 1
    retrained: tuple  # tests, epochs, inputs and batches and samples of CLEVER; nothing: figures 4 to 6 are left out
    kinds: tuple = ("well", *SHARES, "under", "over")  # of models
    starts: tuple = ("corners", "seed")
    retrained_with: tuple = ("deepsensor", *RIVALS, "corners")
    per_class: int = 0      # tests are so many of each class; 0: the first ones
    training: tuple = ()    # more words of train
    mutators: tuple = ()    # of DeepHunter, where its own do not fit
    explorer: tuple = ()    # DeepXplore's steps, likewise
    place: str = ""         # folder of the steps

    @property
    def candidates(self):
        return self.population * self.generations + 1

    @property
    def passes(self):
        """Of one input in a swarm by excitable neurons: each candidate is shown, and derived at every point and both ends."""
        return self.candidates * (1 + self.points + 2)


SCALES = {
    "smoke": Amounts("digits", "lenet1", 1200, 2, ("[0:100]", 6), ("[0:300]", 1), 12, 100, "0.6", "25/255", 5, 4, 2, 1, 1, (0.5,), (0.2,), (20, 1, 1, 3, 6),
                     ("well", "0.3"), ("seed",), ("deepsensor", "deephunter")),
    "small": Amounts("mnist", "lenet5", 5000, 5, ("[0:500]", 40), ("[0:1500]", 1), 100, 2000, "0.3", "25/255", 10, 10, 4, 2, 1, (0.001, 0.1, 0.5),
                     (0.1, 0.3, 0.5), (200, 4, 10, 20, 50)),
    "paper": Amounts("mnist", "lenet5", 60000, 10, ("[0:5000]", 200), ("[0:6000]", 1), 1000, 10000, "0.3", "25/255", 100, 20, 16, 10, 10,
                     (0.001, 0.003, 0.03, 0.1, 0.3, 0.5), (0.1, 0.2, 0.3, 0.5, 0.7), (500, 20, 100, 500, 1024)),
}

# Tables 6 and 7: one clip a speaker. A swarm is small, for a pass of a clip of 3 s costs a thousand times that of a digit.
SPEECH = Amounts("speakers", "deep-speaker", 1800, 6, ("[per-class=10]", 30), ("", 2), 30, 600, "0.002", "", 5, 5, 4, 1, 0, (), (), (), ("well", "under", "over"),
                 per_class=1, training=("--optimizer", "adam:lr=0.003", "--batch", 32),
                 mutators=("--mutators", "audio"), explorer=("--generator", "deepxplore:step=0.0002"), place="speech-deep-speaker/")
SPEECH_RESNET = dataclasses.replace(SPEECH, model="resnet34-sound", kinds=("well",), place="speech-resnet34-sound/")
SPEECH_MODELS = {"small": (SPEECH_RESNET, SPEECH), "paper": tuple(dataclasses.replace(a, tests=300, per_class=10, population=100, generations=20) for a in (SPEECH_RESNET, SPEECH))}


class Measurements:
    def __init__(self, study, amounts):
        self.study, self.amounts = study, amounts
        self.tests = f"{amounts.data}:test" + (f"[per-class={amounts.per_class}]" if amounts.per_class else f"[0:{amounts.tests}]")
        self.clean = f"{amounts.data}:test[0:{amounts.clean}]"
        self.train = f"{amounts.data}:train[0:{amounts.train}]"

    def model(self, kind, seed):
        """Trained well, too little, too long on too few, or with so large a share of polluted images; {file, accuracy}."""
        return self.study.once(f"{self.amounts.place}{kind}-{seed}", lambda: self.make_model(kind, seed))

    def make_model(self, kind, seed):
        a = self.amounts
        data, epochs, more = self.train, a.epochs, ()
        if kind == "under":
            data, epochs = f"{a.data}:train{a.under[0]}", a.under[1]
        elif kind == "over":
            data, epochs = f"{a.data}:train{a.over[0]}", a.over[1]
        elif kind != "well":
            more = ("--pollute", kind, "--pollute-as", POLLUTED_CLASS, "--patch", "1..6")
        name = f"models/{a.place}{kind}-{seed}"
        said = self.study.step(name, "train", a.model, "--data", data, "--test", self.clean, "--epochs", epochs, *more, *a.training, "--seed", seed,
                               output=".onnx")
        return {"file": f"{name}.onnx", "accuracy": said["accuracy"]}

    def right(self, kind, seed):
        """The test inputs that the model gets right, which are those that are changed: {name: label}."""
        file = self.model(kind, seed)["file"]
        said = self.study.step(f"{self.amounts.place}{kind}-{seed}/verdicts", "predict", file, "--data", self.tests)
        return {row.get("file") or f"item {i}": row["label"] for i, row in enumerate(said["predictions"]) if row["label"] == row["predicted"]}

    def spec(self, search, fitness, candidates=None, more=""):
        a = self.amounts
        population, generations = a.population, a.generations
        if candidates:  # as many more of both
            population, generations = round(population * (candidates / a.candidates) ** 0.5), round(generations * (candidates / a.candidates) ** 0.5)
        by = f",by=(path:points={a.points},tolerance=0)" if fitness == "excitable" else ""
        return f"{search}:eps={a.eps},population={population},generations={generations},fitness={fitness}{by}{more}"

    def campaign(self, kind, seed, method, more="", equal_passes=False, again=False):
        """The faults of a method on the inputs that the model gets right. Each input is searched once."""
        a = self.amounts
        file = self.model(kind, seed)["file"]
        candidates = a.passes if equal_passes else None
        name = f"{a.place}{kind}-{seed}/{method}" + ("-equal" if equal_passes else "") + ("-again" if again else "") + more.replace(",", "-").replace("=", "-")
        common_words = ("--data", self.tests, "--seeds", a.tests, "--seed", seed + (1000 if again else 0))
        iterations = ("--iterations", a.tests)
        if method == "pgd":
            steps = 20
            said = self.study.step(name, "attack", file, "--data", self.tests, "--method", f"pgd:steps={steps},restarts={max(1, a.passes // (2 * steps))}",
                                   "--eps", a.eps, "--seed", seed, output="")
            passes, faults = said["passes"] / max(said["tried"], 1), sum(c["broken"] for c in said["classes"])
        else:
            if method == "deepsensor":
                how = ("--method", "deepsensor", "--generator", self.spec("swarm", "excitable", candidates, more))
            elif method in ("noise", "corners"):
                how = ("--guide", "none", "--scheduler", "once", "--generator", f"noise:eps={a.eps}" + (",at=corners" if method == "corners" else ""),
                       "--energy", candidates or a.candidates)
            elif method in RIVALS:
                other = ("--with", self.model("well", seed + 100)["file"], *a.explorer) if method == "deepxplore" else ()
                profile = ("--train", self.train) if method == "deephunter" else ()
                energy = ("--energy", a.candidates, *a.mutators) if method == "deephunter" else ()
                how = ("--method", method, "--scheduler", "sweep", *other, *profile, *energy)
            else:
                search, fitness = method.split("-")
                how = ("--method", "deepsensor", "--generator", self.spec(search, fitness, candidates, more))
            said = self.study.step(name, "fuzz", file, *common_words, *how, *iterations, output="")
            passes, faults = said["passes"] / max(said["tried_seeds"], 1), said["faults"]
        return {"passes": passes, "folder": name, "faults": faults, **self.by_input(name, kind, seed, faults)}

    def by_input(self, name, kind, seed, faults):
        """Of every input: how many tests failed, and what they were taken for."""
        labels = self.right(kind, seed)
        errors = {i: [] for i in labels}
        if faults == 0:
            return {"errors": errors, "labels": labels}
        self.study.step(f"{name}-faults", "export", name, "--to", "csv", output=".csv")
        with open(self.study.work / f"{name}-faults.csv", newline="") as file:
            for row in csv.DictReader(file):
                if row["seed_name"] in errors:
                    errors[row["seed_name"]].append(int(row["predicted"]))
        return {"errors": errors, "labels": labels}

    def repeated(self, function, most=None):
        return self.study.each(function, range(1, (most or self.amounts.repeats) + 1))

    # Is the guide worth it? A swarm by excitable neurons against others of the same number of passes.
    def guide(self, seed):
        return {"deepsensor": self.campaign("well", seed, "deepsensor"),
                **{method: self.campaign("well", seed, method, equal_passes=method not in ("pgd", "genetic-excitable")) for method in GUIDED},
                "again": self.campaign("well", seed, "swarm-loss", equal_passes=True, again=True)}

    # Figure 7, and whether the guide finds other neurons than loss does: of the faults of each.
    def neurons(self, seed):
        file = self.model("well", seed)["file"]
        a = self.amounts
        runs = [self.campaign("well", seed, "deepsensor"), self.campaign("well", seed, "swarm-loss", equal_passes=True),
                self.campaign("well", seed, "swarm-loss", equal_passes=True, again=True), self.campaign("well", seed, "pgd")]
        folders = [run["folder"] for run in runs if run["faults"]]
        for attack in ("jsma", "deepfool"):
            folders.append(f"well-{seed}/{attack}")
            self.study.step(folders[-1], "attack", file, "--data", self.tests, "--method", attack, "--seed", seed, output="")
        said = self.study.step(f"well-{seed}/neurons", "excite", file, "--tests", *folders, "--most", a.tests, "--by", f"path:points={a.points},tolerance=0",
                               "--seed", seed)
        return {"overlap": [(pair["a"].split("/")[1], pair["b"].split("/")[1], pair["each"], pair["pairs"], pair["by_chance"], pair["of_means"])
                            for pair in said["overlap"]]}

    # Figure 8.
    def features(self, seed):
        runs = [self.campaign("well", 1, method) for method in ("deepsensor", "deephunter")]
        said = self.study.step("features", "features", self.model("well", 1)["file"], "--data", self.clean, "--tests",
                               *[run["folder"] for run in runs if run["faults"]], "--picture", "features.svg", "--most",
                               max(30, 3 * self.amounts.tests), "--seed", 1, writes=("features.svg",))
        return said["groups"]

    # Table 3; tables 4 and 5 are the same of other models. As many candidates each, but for rivals that have none to choose.
    def found(self, kind, seed):
        return {"accuracy": self.model(kind, seed)["accuracy"],
                **{method: self.campaign(kind, seed, method) for method in (*RIVALS, "deepsensor", "swarm-loss", "corners")}}

    # Figures 10 and 11: λ, ε (the share of neurons at which a search ends), and where particles begin.
    def parameters(self, seed):
        a = self.amounts
        runs = {("λ", str(value)): f",lambda={value}" for value in a.lambdas}
        runs.update({("ε", str(value)): f",until={value}" for value in a.untils})
        runs.update({("start", value): f",start={value}" for value in a.starts})
        return {key: self.campaign("well", seed, "deepsensor", more) for key, more in runs.items()}

    # Figures 4 to 6: models retrained with tests of training images, and what they withstand.
    def retrained(self, seed):
        a = self.amounts
        count, epochs, *_ = a.retrained
        original = self.model("well", seed)["file"]
        training = ("--data", self.train, "--clean", self.clean, "--held-out", 0, "--clean-loss", 1, "--epochs", epochs, "--control", "none", "--seed", seed)
        models = {"original": (original, self.model("well", seed)["accuracy"])}
        for method in a.retrained_with:
            how = {"deepsensor": ("--method", "deepsensor", "--generator", self.spec("swarm", "excitable")),
                   "corners": ("--guide", "none", "--scheduler", "once", "--generator", f"noise:eps={a.eps},at=corners", "--energy", a.candidates),
                   "deepxplore": ("--method", "deepxplore", "--scheduler", "sweep", "--with", self.model("well", seed + 100)["file"]),
                   "deephunter": ("--method", "deephunter", "--scheduler", "sweep", "--train", self.train),
                   "dlfuzz": ("--method", "dlfuzz", "--scheduler", "sweep")}[method]
            made = f"well-{seed}/made-{method}"
            said = self.study.step(made, "fuzz", original, "--data", f"{a.data}:train[0:{count}]", "--seeds", count, *how, "--iterations", count, "--seed", seed,
                                   output="")
            if said["broken_seeds"] > 1:
                models[method] = self.repaired(seed, method, "--tests", made, "--per-seed", 1, *training)
        models["PGD training"] = self.repaired(seed, "pgd", "--adversarial", f"pgd:eps={a.small_eps},steps=5", *training)
        plain = self.study.step(f"well-{seed}/plain", "train", original, "--data", self.train, "--test", self.clean, "--epochs", epochs, "--optimizer",
                                "sgd:lr=0.003", "--seed", seed, output=".onnx")
        models["as much training"] = (f"well-{seed}/plain.onnx", plain["accuracy"])
        return {name: {"clean": clean, "asr": self.broken_by_pgd(seed, name, file), "clever": self.clever(seed, name, file)}
                for name, (file, clean) in models.items()}

    def repaired(self, seed, name, *words):
        said = self.study.step(f"well-{seed}/repaired-{name}", "repair", self.model("well", seed)["file"], *words, output=".onnx")
        return f"well-{seed}/repaired-{name}.onnx", said["figures"]["clean-after"]

    def broken_by_pgd(self, seed, name, model):
        said = self.study.step(f"well-{seed}/withstood-{name.replace(' ', '-')}", "attack", model, "--data", self.tests, "--method", "pgd", "--eps",
                               self.amounts.small_eps, "--seed", seed, output="")
        return sum(c["broken"] for c in said["classes"]) / max(said["tried"], 1)

    def clever(self, seed, name, model):
        _, _, inputs, batches, samples = self.amounts.retrained
        said = self.study.step(f"well-{seed}/clever-{name.replace(' ', '-')}", "quality", model, "--clever", "--data", self.tests, "--inputs", inputs, "--batches", batches,
                               "--samples", samples, "--seed", seed)
        return statistics.mean(one["score"] for one in said["clever"]["inputs"])


def main():
    parser = common.arguments(__doc__.split("\n")[0], tuple(SCALES))
    given = parser.parse_args()
    study, output = common.open_study("deepsensor", given)
    amounts = SCALES[given.scale]
    measurements = Measurements(study, amounts)
    missing = []

    def asked(name, function, most=None):
        """A list with a result for each repetition; fewer where steps are missing."""
        def tried(seed):
            try:
                return function(seed)
            except common.Missing:
                missing.append(f"{name}, seed {seed}")
                return None
        return [result for result in measurements.repeated(tried, most) if result is not None]
    found = {"guide": asked("guide", measurements.guide), "neurons": asked("neurons", measurements.neurons)}
    for kind in amounts.kinds:
        found[kind] = asked(f"faults of models '{kind}'", lambda seed, kind=kind: measurements.found(kind, seed))
    found["parameters"] = asked("parameters", measurements.parameters, amounts.few)
    found["features"] = asked("features", measurements.features, 1)
    if amounts.retrained:
        found["retrained"] = asked("retrained", measurements.retrained, amounts.few)
    # What takes longest comes last.
    found["speech"] = {}
    for speech in SPEECH_MODELS.get(given.scale, ()):
        measurements = Measurements(study, speech)
        for kind in speech.kinds:
            runs = asked(f"faults of {speech.model} '{kind}'", lambda seed, kind=kind: measurements.found(kind, seed), speech.repeats)
            if runs:
                found["speech"][speech.model, kind] = runs
    deepsensor_results.write(study, output, given.scale, amounts, found, missing)
    print(f"{study.steps} steps, {study.repeated} of them from before, {study.seconds / 60:.1f} minutes of steps; results in {output}")
    return 0


if __name__ == "__main__":
    common.run(main)
