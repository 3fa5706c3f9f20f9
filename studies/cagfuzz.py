#!/usr/bin/env python3
"""CAGFuzz repeated: examples of a generator trained on the data, how many of them are errors at which similarity, and what retraining with them gives.

usage: ./dev study cagfuzz --scale smoke|small|paper

Tables 3 to 5 and figures 7 to 9 of Zhang et al., with the controls the paper lacks: as many plain extra images, the same images twice, mutation
and noise at the same cost, and errors as a function of similarity, by pixels and by deep features.
"""
import csv
import dataclasses

import cagfuzz_results
import common

DOMAINS = {"halves": "halves", "pair": "pair:a=3,b=8", "clusters": "clusters:features={reference}"}


@dataclasses.dataclass(frozen=True)
class Amounts:
    train: int             # images that models are trained on
    tests: int             # images that seeds are chosen from
    epochs: int            # of a model
    reference: str         # the network whose features judge
    reference_epochs: int
    generator: dict        # options of train-generator for every kind of domains
    generator_data: str    # the part of the training images that generators are trained on; empty: all
    seeds: int             # right inputs of table 5
    gradient_seeds: int    # of those, how many DeepXplore gets, which takes a hundred passes for each; 0: it is left out
    iterations: int        # picks of the campaigns
    few: int               # training images of each class, tables 3 and 4
    few_epochs: int
    few_tests: int         # images their accuracy is measured on, once an epoch
    repeats: int           # of tables 3 and 4
    retrain_epochs: int    # figures 7 to 9
    continued: int         # models that they are of


@dataclasses.dataclass(frozen=True)
class Subject:
    data: str
    models: tuple          # the first is fuzzed
    amounts: Amounts
    strengths: tuple       # eps of FGSM; the last is that of noise and of retraining
    domains: tuple
    files: tuple = ()      # (model, file) of those that are not trained here

    @property
    def train(self):
        return f"{self.data}:train[0:{self.amounts.train}]"

    @property
    def tests(self):
        return f"{self.data}:test[0:{self.amounts.tests}]"

    @property
    def eps(self):
        return self.strengths[-1]

    @property
    def reference(self):
        return f"{self.data}/reference.onnx"

    def onnx(self, model):
        return dict(self.files).get(model, f"{self.data}/{short(model)}.onnx")


def short(model):
    return model.split(":")[0]


def file_name(text):
    return text.replace(", ", "-").replace(" ", "-").replace("/", "_")


TINY = ("--translator", "resnet:width=4,blocks=1", "--critic-width", 4, "--epochs", 2, "--epoch-images", 128, "--batch", 16, "--optimizer",
        "adam:lr=0.002,beta1=0.5")
SMOKE = Amounts(train=1500, tests=300, epochs=1, reference="lenet4", reference_epochs=1, generator={"halves": TINY},
                generator_data="[0:1500]", seeds=40, gradient_seeds=20, iterations=16, few=4, few_epochs=4,
                few_tests=300, repeats=1, retrain_epochs=1, continued=1)
SMALL = Amounts(train=20000, tests=5000, epochs=3, reference="vgg19:width=8,bn=true", reference_epochs=2, seeds=2000, gradient_seeds=100,
                generator={"halves": (), "pair": ("--epochs", 2), "clusters": ("--epochs", 2)}, generator_data="", iterations=400, few=10, few_epochs=50, few_tests=1000, repeats=5, retrain_epochs=3, continued=3)
PAPER = dataclasses.replace(SMALL, train=60000, tests=10000, epochs=10, reference="vgg19:bn=true", reference_epochs=10,
                            generator={kind: ("--translator", "resnet:width=32", "--epochs", 20, "--epoch-images", 30000) for kind in DOMAINS},
                            gradient_seeds=1000, iterations=10000, few_tests=10000, retrain_epochs=5)
GIVEN_RESNET = "cifar10/resnet20-given.onnx"
LENETS = ("lenet5", "lenet1", "lenet4")


def subjects(scale, resnet20):
    if scale == "smoke":
        return [Subject("digits", ("lenet5", "lenet1"), SMOKE, ("0.1", "0.3"), ("halves",))]
    amounts = SMALL if scale == "small" else PAPER
    colour = dataclasses.replace(amounts, train=min(amounts.train, 50000), few=100, seeds=500 if scale == "small" else 2000,
                                 gradient_seeds=0,  # none of its first 100 candidates was valid
                                 repeats=3 if scale == "small" else 5, continued=2)
    all_domains = tuple(DOMAINS)
    greys = [Subject("mnist", LENETS, amounts, ("0.1", "0.3"), all_domains), Subject("fashion-mnist", LENETS, amounts, ("8/255", "25/255"), all_domains)]
    vgg = "vgg16:width=16,bn=true,head=linear" if scale == "small" else "vgg16:bn=true"
    files = (("resnet20", GIVEN_RESNET),) if resnet20 else ()
    return [*greys, Subject("cifar10", ("resnet20", vgg), colour, ("2/255", "8/255"), ("halves", "clusters"), files)]


class Measurements:
    def __init__(self, study):
        self.study = study
        self.missing = []

    def each(self, makers):
        """{key: made} of {key: function}; with --only-results, of those whose steps are there."""
        made = {}
        for key, make in makers.items():
            try:
                made[key] = make()
            except common.Missing as step:
                self.missing.append(str(step))
        return made

    def trained(self, subject, name, model, data, tests, epochs, *more):
        return self.study.step(name, "train", model, "--data", data, "--test", tests, "--epochs", epochs, *more, output=".onnx")["accuracy"]

    def prepare(self, subject):
        """Models and the reference."""
        def model(name):
            if name in dict(subject.files):
                return self.study.step(f"{subject.data}/{short(name)}-accuracy", "predict", subject.onnx(name), "--data", subject.tests)["accuracy"]
            return self.trained(subject, f"{subject.data}/{short(name)}", name, subject.train, subject.tests, subject.amounts.epochs)

        makers = {name: lambda name=name: model(name) for name in subject.models}
        makers["reference"] = lambda: self.trained(subject, f"{subject.data}/reference", subject.amounts.reference, subject.train, subject.tests,
                                                   subject.amounts.reference_epochs)
        return self.each(makers)

    def generator(self, subject, kind):
        """A generator is trained when it is first asked for, so that a study that is stopped has figures of the kinds before it."""
        return self.study.once((subject.data, kind), lambda: self.study.step(f"{subject.data}/aeg-{kind}", "train-generator", "--data",
                               f"{subject.data}:train{subject.amounts.generator_data}", "--domains", DOMAINS[kind].format(reference=subject.reference),
                               *subject.amounts.generator[kind], "--sheets", "none", output=".onnx")["figures"])

    def generators(self, subject):
        return self.each({kind: lambda kind=kind: self.generator(subject, kind) for kind in subject.domains})

    def aeg(self, subject, kind, options=""):
        self.generator(subject, kind)
        return ("--generator", "aeg" + options, "--aeg", f"{subject.data}/aeg-{kind}.onnx", "--reference", subject.reference)

    def once(self, subject, model, name, generator, seeds):
        """One candidate of each right input, whatever a guide would say; of those that are errors, how similar they are."""
        place = f"{subject.data}/e-{short(model)}-{file_name(name)}"
        said = self.study.step(place, "fuzz", subject.onnx(model), "--data", subject.tests, "--seeds", seeds, "--guide", "random", "--scheduler", "once",
                               "--energy", 1, *generator(), output="")
        found = {key: said[key] for key in ("tried_seeds", "valid", "faults", "passes")}
        found["each"] = []
        if said["faults"]:
            values = f"{place}-each.csv"
            self.study.step(f"{place}-quality", "quality", subject.onnx(model), "--tests", place, "--metrics", f"ass,afs:features={subject.reference}",
                            "--each", values, writes=(values,))
            with open(self.study.work / values, newline="") as file:
                found["each"] = [(float(row["ass"]), float(row["afs"])) for row in csv.DictReader(file)]
        return found

    # Table 5, and errors over similarity. What takes long comes last.
    def errors(self, subject):
        ways = {f"FGSM {eps}": lambda model, eps=eps: ("--generator", f"attack:method=fgsm,eps={eps}") for eps in subject.strengths}
        ways["DeepHunter"] = lambda model: ("--generator", "mutate:set=deephunter")
        ways["noise"] = lambda model: ("--generator", f"noise:eps={subject.eps}")
        ways.update({f"CAGFuzz, {kind}": lambda model, kind=kind: self.aeg(subject, kind, ":similarity=-1,top=0") for kind in subject.domains})
        ways["DeepXplore"] = lambda model: ("--generator", "deepxplore", "--with", subject.onnx(subject.models[1]))

        def tried(model, name):
            few = name == "DeepXplore"
            return self.once(subject, model, name, lambda: ways[name](model), subject.amounts.gradient_seeds if few else subject.amounts.seeds)
        # DeepXplore compares models: the first with the second is one comparison.
        return self.each({(model, name): lambda model=model, name=name: tried(model, name) for name in ways for model in subject.models
                          if name != "DeepXplore" or (model == subject.models[0] and subject.amounts.gradient_seeds)})

    # The whole loop: examples of examples, against mutation and against no guide, at as many picks.
    def campaigns(self, subject):
        base = (subject.onnx(subject.models[0]), "--data", subject.tests, "--seeds", subject.amounts.seeds, "--energy", 10, "--iterations",
                subject.amounts.iterations)
        ways = {"cagfuzz": ("cagfuzz", "newest", "aeg"), "cagfuzz, total": ("cagfuzz:gain=total", "newest", "aeg"), "no guide": ("random", "sweep", "aeg"),
                "mutation": ("nc", "sweep", "mutate")}

        def campaign(name):
            guide, scheduler, generator = ways[name]
            made_by = self.aeg(subject, subject.domains[0]) if generator == "aeg" else ("--generator", generator)
            said = self.study.step(f"{subject.data}/c-{file_name(name)}", "fuzz", *base, "--guide", guide, "--scheduler", scheduler, *made_by, output="")
            return {key: said[key] for key in ("valid", "mutants", "outputs", "faults", "distinct_faults", "broken_seeds", "tried_seeds", "passes")}
        return self.each({name: lambda name=name: campaign(name) for name in ways})

    # Errors beside their originals, to be looked at: of every model, for the first kind of domains.
    def looked_at(self, subject):
        def errors_of(model):
            run = f"{subject.data}/e-{short(model)}-{file_name(f'CAGFuzz, {subject.domains[0]}')}"
            listed = self.study.step(f"{run}-listed", "faults", run, "--distinct", "--most", 0)["faults"]
            if listed:
                self.study.step(f"{run}-images", "export", run, "--distinct", "--to", "npz", output=".npz")
                self.study.step(f"{subject.data}/originals", "data", "export", subject.tests, "--to", "npz", output=".npz")
            return {"faults": listed, "images": f"{run}-images.npz", "originals": f"{subject.data}/originals.npz"}
        return self.each({model: lambda model=model: errors_of(model) for model in subject.models})

    def examples_of(self, name, model, data, generator):
        """An NPZ file with a candidate of every input of some data, or nothing if there are none."""
        said = self.study.step(f"{name}-run", "fuzz", model, "--data", data, "--seeds", 100000, "--wrong-seeds", "keep", "--guide", "random",
                               "--scheduler", "once", "--energy", 1, *generator, output="")
        if not said["outputs"]:
            return None
        self.study.step(name, "export", f"{name}-run", "--what", "outputs", "--to", "npz", output=".npz")
        return f"./{name}.npz"

    # Tables 3 and 4: few images, and as many more of one kind or another.
    def retrained(self, subject):
        makers = {(repeat, model): lambda repeat=repeat, model=model: self.retrained_once(subject, repeat, model)
                  for repeat in range(1, subject.amounts.repeats + 1) for model in subject.models}
        return [{"model": short(model), "repeat": repeat, "accuracies": row} for (repeat, model), row in self.each(makers).items()]

    def few(self, subject, repeat):
        return f"{subject.data}:train[per-class={subject.amounts.few},seed={repeat}]"

    def trained_on_few(self, subject, repeat, model, extra=None):
        name = f"{subject.data}/few-{repeat}/{short(model)}"
        data = self.few(subject, repeat)
        if extra:
            kind, spec = extra
            name, data = f"{name}-with-{file_name(kind)}", f"{data}+{spec}"
        return self.trained(subject, name, model, data, f"{subject.data}:test[0:{subject.amounts.few_tests}]", subject.amounts.few_epochs, "--augment",
                            "none", "--seed", repeat)

    def retrained_once(self, subject, repeat, model):
        few, place = self.few(subject, repeat), f"{subject.data}/few-{repeat}"
        for other in subject.models:  # FGSM's images are made with each of them
            self.trained_on_few(subject, repeat, other)

        def own(other):
            return f"{place}/{short(other)}.onnx"

        def by_attack(other):
            return self.examples_of(f"{place}/fgsm-{short(other)}", own(other), few, ("--generator", f"attack:method=fgsm,eps={subject.eps}"))

        def by_examples(kind):
            # The model has no say in these images, so one set serves all.
            return self.examples_of(f"{place}/cagfuzz-{kind}", own(subject.models[0]), few, self.aeg(subject, kind, ":similarity=-1,top=0"))

        def with_more(extra, images):
            spec = images()
            return self.trained_on_few(subject, repeat, model, (extra, spec)) if spec else None
        extras = {"the same": lambda: few, "plain": lambda: f"{subject.data}:train[per-class={subject.amounts.few},seed={repeat + 1000}]"}
        extras.update({f"FGSM-{short(other)}": lambda other=other: by_attack(other) for other in subject.models})
        extras.update({f"CAGFuzz, {kind}": lambda kind=kind: by_examples(kind) for kind in subject.domains})
        row = {"original": self.trained_on_few(subject, repeat, model)}
        row.update(self.each({extra: lambda extra=extra, images=images: with_more(extra, images) for extra, images in extras.items()}))
        return {extra: accuracy for extra, accuracy in row.items() if accuracy is not None}

    # Figures 7 to 9: models that are trained already, with examples of training images.
    def continued(self, subject):
        makers = {model: lambda model=model: self.continued_model(subject, model) for model in subject.models[:subject.amounts.continued]}
        return [row for rows in self.each(makers).values() for row in rows]

    def continued_model(self, subject, model):
        amounts, data, name, onnx = subject.amounts, subject.data, short(model), subject.onnx(model)
        quarter = f"{data}:train[0:{amounts.train // 4}]"
        by_examples = self.aeg(subject, subject.domains[0], ":similarity=0.9")
        extras = {"as it is": None,
                  "FGSM": self.examples_of(f"{data}/more-fgsm-{name}", onnx, quarter, ("--generator", f"attack:method=fgsm,eps={subject.eps}")),
                  "DeepHunter": self.examples_of(f"{data}/more-deephunter-{name}", onnx, quarter, ("--generator", "mutate:set=deephunter")),
                  "CAGFuzz": self.examples_of(f"{data}/more-cagfuzz-{name}", onnx, quarter, by_examples)}
        test = self.examples_of(f"{data}/test-cagfuzz-{name}", onnx, subject.tests, by_examples)

        def on_examples(place, file):
            return self.study.step(place, "predict", file, "--data", test)["accuracy"] if test else None
        found = [{"model": name, "extra": "before", "epochs": [], "examples": on_examples(f"{data}/before-{name}", onnx)}]
        for extra, spec in extras.items():
            if spec is None and extra != "as it is":
                continue
            place = f"{data}/more-{name}-{file_name(extra)}"
            said = self.study.step(place, "train", onnx, "--data", subject.train + (f"+{spec}" if spec else ""), "--test", subject.tests, "--epochs",
                                   amounts.retrain_epochs, "--optimizer", "sgd:lr=0.01", "--augment", "none", output=".onnx")
            found.append({"model": name, "extra": extra, "epochs": [e["accuracy"] for e in said["epochs"]],
                          "examples": on_examples(f"{place}-examples", f"{place}.onnx")})
        return found

    # Whether what breaks one model breaks others.
    def transferred(self, subject):
        names = [f"FGSM {subject.strengths[0]}", "DeepHunter", f"CAGFuzz, {subject.domains[0]}"]

        def matrix():
            runs = [f"{subject.data}/e-{short(model)}-{file_name(name)}" for name in names for model in subject.models]
            return self.study.step(f"{subject.data}/transfer", "transfer", *runs, "--models", *(subject.onnx(m) for m in subject.models), "--plot",
                                   f"{subject.data}/transfer.svg", writes=(f"{subject.data}/transfer.svg",))
        return self.each({"matrix": matrix})


QUESTIONS = ("prepare", "errors", "generators", "looked_at", "transferred", "retrained", "campaigns", "continued")


def main():
    parser = common.arguments(__doc__.split("\n")[0], ("smoke", "small", "paper"))
    parser.set_defaults(jobs=1)
    parser.add_argument("--data", help="only these data sets, separated by commas")
    parser.add_argument("--domains", help="only these kinds of domains, separated by commas: to have answers on the first before the others are trained")
    parser.add_argument("--resnet20", default=common.ROOT.parent / "shared/data/resnet20-cifar10.onnx",
                        help="a ResNet-20 of CIFAR-10 (default: ../shared/data/resnet20-cifar10.onnx); one is trained where there is none")
    given = parser.parse_args()
    study, output = common.open_study("cagfuzz", given)
    measurements = Measurements(study)
    resnet20 = common.given_resnet20(given.resnet20, study.work / GIVEN_RESNET)
    found = {question: [] for question in QUESTIONS}
    for subject in subjects(given.scale, resnet20):
        if given.data and subject.data not in given.data.split(","):
            measurements.missing.append(f"all of {subject.data}")
            continue
        if given.domains:
            subject = dataclasses.replace(subject, domains=tuple(kind for kind in subject.domains if kind in given.domains.split(",")))
        (study.work / subject.data).mkdir(exist_ok=True)
        for question in QUESTIONS:
            found[question].append((subject, getattr(measurements, question)(subject)))
    cagfuzz_results.write(study, output, given.scale, found, list(dict.fromkeys(measurements.missing)))
    print(f"{study.steps} steps, {study.repeated} of them from before, {study.seconds / 60:.1f} minutes of steps; results in {output}")
    return 0


if __name__ == "__main__":
    common.run(main)
