#!/usr/bin/env python3
"""CAGFuzz repeated: examples of a generator trained on the data, how many of them are errors at which similarity, and what retraining with them gives.

usage: ./dev study cagfuzz --scale smoke|small|paper

Tables 3 to 5 and figures 7 to 9 of Zhang et al., with the controls the paper lacks: as many plain extra images, mutation and noise at the same
cost, and errors as a function of the similarity that is asked for.
"""
import dataclasses

import cagfuzz_results
import common

DOMAINS = {"halves": "halves", "pair": "pair:a=3,b=8", "clusters": "clusters:features={reference}"}


@dataclasses.dataclass(frozen=True)
class Amounts:
    train: int             # images that models and generators are trained on
    tests: int             # images that seeds are chosen from
    epochs: int            # of a model
    reference: str         # the network whose features judge
    reference_epochs: int
    generator: tuple       # options of train-generator
    seeds: int             # right inputs of table 5
    similarities: tuple    # of its curves
    iterations: int        # picks of the campaigns
    few: int               # training images of each class, tables 3 and 4
    few_epochs: int
    repeats: int           # of tables 3 and 4
    retrain_epochs: int    # figures 7 to 9
    continued: int         # models that they are of


@dataclasses.dataclass(frozen=True)
class Subject:
    data: str
    models: tuple          # the first is fuzzed
    amounts: Amounts
    eps: str               # of FGSM
    domains: tuple

    @property
    def train(self):
        return f"{self.data}:train[0:{self.amounts.train}]"

    @property
    def tests(self):
        return f"{self.data}:test[0:{self.amounts.tests}]"

    def onnx(self, model):
        return f"{self.data}/{model.split(':')[0]}.onnx"


TINY = ("--translator", "resnet:width=4,blocks=1", "--critic-width", 4, "--epochs", 2, "--epoch-images", 128, "--batch", 16, "--optimizer",
        "adam:lr=0.002,beta1=0.5")
SMOKE = Amounts(train=1500, tests=300, epochs=1, reference="lenet4", reference_epochs=1, generator=TINY, seeds=40, similarities=(-1, 0.9),
                iterations=16, few=4, few_epochs=4, repeats=1, retrain_epochs=1, continued=1)
SMALL = Amounts(train=20000, tests=5000, epochs=5, reference="vgg19:width=8,bn=true", reference_epochs=3,
                generator=("--epochs", 8, "--epoch-images", 3200), seeds=2000, similarities=(-1, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99), iterations=400,
                few=10, few_epochs=50, repeats=5, retrain_epochs=5, continued=3)
PAPER = dataclasses.replace(SMALL, train=60000, tests=10000, epochs=10, reference="vgg19:bn=true", reference_epochs=10,
                            generator=("--translator", "resnet:width=32", "--epochs", 20, "--epoch-images", 30000), iterations=10000)
LENETS = ("lenet5", "lenet1", "lenet4")


def subjects(scale):
    if scale == "smoke":
        return [Subject("digits", ("lenet5", "lenet1"), SMOKE, "0.3", ("halves",))]
    amounts = SMALL if scale == "small" else PAPER
    colour = dataclasses.replace(amounts, train=min(amounts.train, 50000), few=100, seeds=500 if scale == "small" else 2000)
    all_domains = tuple(DOMAINS)
    greys = [Subject("mnist", LENETS, amounts, "0.3", all_domains), Subject("fashion-mnist", LENETS, amounts, "25/255", all_domains)]
    vgg = "vgg16:width=16,bn=true,head=linear" if scale == "small" else "vgg16:bn=true"
    return [*greys, Subject("cifar10", ("resnet20", vgg), colour, "8/255", ("halves", "clusters"))]


class Measurements:
    def __init__(self, study):
        self.study = study

    def prepare(self, subject):
        """Models, the reference, and a generator for every kind of domains."""
        amounts, data = subject.amounts, subject.data
        accuracies = {}
        for model in subject.models:
            accuracies[model] = self.study.step(f"{data}/{model.split(':')[0]}", "train", model, "--data", subject.train, "--test", subject.tests,
                                                "--epochs", amounts.epochs, output=".onnx")["accuracy"]
        reference = self.study.step(f"{data}/reference", "train", amounts.reference, "--data", subject.train, "--test", subject.tests, "--epochs",
                                    amounts.reference_epochs, output=".onnx")["accuracy"]
        figures = {}
        for kind in subject.domains:
            domains = DOMAINS[kind].format(reference=f"{data}/reference.onnx")
            figures[kind] = self.study.step(f"{data}/aeg-{kind}", "train-generator", "--data", subject.train, "--test", subject.tests, "--domains",
                                            domains, *amounts.generator, output=".onnx")["figures"]
        return {"accuracies": accuracies, "reference": reference, "generators": figures}

    def aeg(self, subject, kind, options=""):
        return ("--generator", "aeg" + options, "--aeg", f"{subject.data}/aeg-{kind}.onnx", "--reference", f"{subject.data}/reference.onnx")

    def once(self, subject, name, *generator):
        """One candidate of each right input, whatever a guide would say."""
        said = self.study.step(f"{subject.data}/{name}", "fuzz", subject.onnx(subject.models[0]), "--data", subject.tests, "--seeds",
                               subject.amounts.seeds, "--guide", "random", "--scheduler", "once", "--energy", 1, *generator, output="")
        found = {key: said[key] for key in ("tried_seeds", "valid", "faults", "broken_seeds")}
        if found["faults"]:
            quality = self.study.step(f"{subject.data}/{name}-quality", "quality", subject.onnx(subject.models[0]), "--tests",
                                      f"{subject.data}/{name}", "--metrics", "ass")
            found["ssim"] = common.metrics_of(quality).get("ass")
        return found

    # Table 5, and errors over the similarity that is asked for.
    def errors(self, subject):
        other = subject.onnx(subject.models[1])
        found = {"FGSM": self.once(subject, "e-fgsm", "--generator", f"attack:method=fgsm,eps={subject.eps}"),
                 "DeepHunter": self.once(subject, "e-deephunter", "--generator", "mutate:set=deephunter"),
                 "DeepXplore": self.once(subject, "e-deepxplore", "--generator", "deepxplore", "--with", other),
                 "noise": self.once(subject, "e-noise", "--generator", f"noise:eps={subject.eps}")}
        for kind in subject.domains:
            for similarity in subject.amounts.similarities:
                found[f"CAGFuzz, {kind}, {similarity}"] = self.once(subject, f"e-{kind}-{similarity}",
                                                                    *self.aeg(subject, kind, f":similarity={similarity},top=0"))
        return found

    # The whole loop: examples of examples, against mutation and against no guide, at as many picks.
    def campaigns(self, subject):
        found = {}
        base = (subject.onnx(subject.models[0]), "--data", subject.tests, "--seeds", subject.amounts.seeds, "--energy", 10, "--iterations",
                subject.amounts.iterations)
        ways = {"cagfuzz": ("cagfuzz", "newest", "aeg"), "cagfuzz, total": ("cagfuzz:gain=total", "newest", "aeg"), "no guide": ("random", "sweep", "aeg"),
                "mutation": ("nc", "sweep", "mutate")}
        for kind in subject.domains[:1]:
            for name, (guide, scheduler, generator) in ways.items():
                made_by = self.aeg(subject, kind) if generator == "aeg" else ("--generator", generator)
                said = self.study.step(f"{subject.data}/c-{name.replace(', ', '-').replace(' ', '-')}", "fuzz", *base, "--guide", guide, "--scheduler",
                                       scheduler, *made_by, output="")
                found[name] = {key: said[key] for key in ("valid", "mutants", "outputs", "faults", "distinct_faults", "broken_seeds", "tried_seeds",
                                                          "passes")}
        return found

    def examples_of(self, name, model, data, *generator):
        """An NPZ file with a candidate of every input of some data, or nothing if there are none."""
        said = self.study.step(f"{name}-run", "fuzz", model, "--data", data, "--seeds", 100000, "--wrong-seeds", "keep", "--guide", "random",
                               "--scheduler", "once", "--energy", 1, *generator, output="")
        if not said["outputs"]:
            return None
        self.study.step(name, "export", f"{name}-run", "--what", "outputs", "--to", "npz", output=".npz")
        return f"./{name}.npz"

    # Tables 3 and 4: few images, and as many more of one kind or another.
    def retrained(self, subject):
        amounts, data = subject.amounts, subject.data
        found = []
        for repeat in range(1, amounts.repeats + 1):
            few = f"{data}:train[per-class={amounts.few},seed={repeat}]"
            place = f"{data}/few-{repeat}"
            first = {}
            for model in subject.models:
                first[model] = self.trained(subject, f"{place}/{model.split(':')[0]}", model, few, repeat)
            extras = {"plain": f"{data}:train[per-class={amounts.few},seed={repeat + 1000}]"}
            for model in subject.models:
                name = model.split(":")[0]
                extras[f"FGSM-{name}"] = self.examples_of(f"{place}/fgsm-{name}", f"{place}/{name}.onnx", few,
                                                             "--generator", f"attack:method=fgsm,eps={subject.eps}")
            name = subject.models[0].split(":")[0]
            for kind in subject.domains:
                extras[f"CAGFuzz, {kind}"] = self.examples_of(f"{place}/cagfuzz-{kind}", f"{place}/{name}.onnx", few,
                                                                 *self.aeg(subject, kind, ":similarity=-1,top=0"))
            for model in subject.models:
                row = {"original": first[model]}
                for extra, spec in extras.items():
                    if spec:
                        row[extra] = self.trained(subject, f"{place}/{model.split(':')[0]}-with-{extra.replace(', ', '-')}", model,
                                                  f"{few}+{spec}", repeat)
                found.append({"model": model.split(":")[0], "repeat": repeat, "accuracies": row})
        return found

    def trained(self, subject, name, model, data, seed):
        return self.study.step(name, "train", model, "--data", data, "--test", subject.tests, "--epochs", subject.amounts.few_epochs, "--augment",
                               "none", "--seed", seed, output=".onnx")["accuracy"]

    # Figures 7 to 9: models that are trained already, with examples of training images.
    def continued(self, subject):
        amounts, data = subject.amounts, subject.data
        found = []
        half = f"{data}:train[0:{amounts.train // 4}]"
        for model in subject.models[:amounts.continued]:
            name = model.split(":")[0]
            onnx = subject.onnx(model)
            extras = {"as it is": None}
            extras["FGSM"] = self.examples_of(f"{data}/more-fgsm-{name}", onnx, half, "--generator", f"attack:method=fgsm,eps={subject.eps}")
            extras["DeepHunter"] = self.examples_of(f"{data}/more-deephunter-{name}", onnx, half, "--generator", "mutate:set=deephunter")
            kind = subject.domains[0]
            extras["CAGFuzz"] = self.examples_of(f"{data}/more-cagfuzz-{name}", onnx, half, *self.aeg(subject, kind, ":similarity=0.9"))
            test = self.examples_of(f"{data}/test-cagfuzz-{name}", onnx, subject.tests, *self.aeg(subject, kind, ":similarity=0.9"))
            for extra, spec in extras.items():
                if spec is None and extra != "as it is":
                    continue
                place = f"{data}/more-{name}-{extra.replace(' ', '-')}"
                said = self.study.step(place, "train", onnx, "--data", subject.train + (f"+{spec}" if spec else ""), "--test", subject.tests,
                                       "--epochs", amounts.retrain_epochs, "--optimizer", "sgd:lr=0.01", "--augment", "none", output=".onnx")
                on_examples = self.study.step(f"{place}-examples", "predict", f"{place}.onnx", "--data", test)["accuracy"] if test else None
                found.append({"model": name, "extra": extra, "epochs": [e["accuracy"] for e in said["epochs"]], "examples": on_examples})
            before = self.study.step(f"{data}/before-{name}", "predict", onnx, "--data", test)["accuracy"] if test else None
            found.append({"model": name, "extra": "before", "epochs": [], "examples": before})
        return found

    # Whether what breaks one model breaks others.
    def transferred(self, subject):
        runs = [f"{subject.data}/e-fgsm", *(f"{subject.data}/e-{kind}-{subject.amounts.similarities[0]}" for kind in subject.domains)]
        return self.study.step(f"{subject.data}/transfer", "transfer", *runs, "--models", *(subject.onnx(m) for m in subject.models), "--plot",
                               f"{subject.data}/transfer.svg", writes=(f"{subject.data}/transfer.svg",))


QUESTIONS = ("prepare", "errors", "campaigns", "transferred", "retrained", "continued")


def main():
    parser = common.arguments(__doc__.split("\n")[0], ("smoke", "small", "paper"))
    parser.set_defaults(jobs=1)
    parser.add_argument("--data", help="only these data sets, separated by commas")
    given = parser.parse_args()
    study, output = common.open_study("cagfuzz", given)
    measurements = Measurements(study)
    found, missing = {question: [] for question in QUESTIONS}, []
    for subject in subjects(given.scale):
        if given.data and subject.data not in given.data.split(","):
            missing.append(f"{subject.data}")
            continue
        (study.work / subject.data).mkdir(exist_ok=True)
        for question in QUESTIONS:
            try:
                found[question].append((subject, getattr(measurements, question)(subject)))
            except common.Missing as step:
                missing.append(f"{question} of {subject.data} (from {step})")
    cagfuzz_results.write(study, output, given.scale, found, missing)
    print(f"{study.steps} steps, {study.repeated} of them from before, {study.seconds / 60:.1f} minutes of steps; results in {output}")
    return 0


if __name__ == "__main__":
    common.run(main)
