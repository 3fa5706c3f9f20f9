#!/usr/bin/env python3
"""Revisiting neuron coverage: the research questions and hypotheses of Yang et al. (SANER 2022), with controls.

usage: ./dev study revisiting --scale smoke|small|paper        docs/studies.md says what is done and why

This file makes the measurements; revisiting_results.py makes tables and figures of them.
"""
import dataclasses

import common
import revisiting_results

# Data: the paper's largest change (RQ3), and a smaller one for everything that compares models. At the paper's, every
# model of MNIST is broken on every input, so no two models would differ.
EPS = {"digits": ("76/255", "25/255"), "mnist": ("76/255", "25/255"), "fashion-mnist": ("25/255", "8/255"),
       "cifar10": ("16/255", "2/255")}
COVERAGE_DRIVEN = {"deephunter": "all", "dh-d": "d", "dh-n": "n"}  # method: group of transformations
CRITERIA = "nc,kmnc,nbc,snac,tknc,tknp"
RESNET_PREPROCESSING = ("--mean", ".485,.456,.406", "--std", ".229,.224,.225")


@dataclasses.dataclass(frozen=True)
class Amounts:
    train: int        # images to train on
    epochs: int       # of the model under test
    tests: int        # test images that are attacked and fuzzed
    clean: int        # test images for accuracy
    energy: int       # mutants of a pick; every seed is picked twice on average
    steps: int        # of PGD
    parts: int        # the k of RQ1 and of algorithm 1
    per_image: int    # mutants of an image in algorithm 1: so many that enough of them raise coverage
    most: int         # tests that a round of it keeps, so that all kinds keep the same number
    retrain: int      # epochs of retraining
    clever: tuple     # inputs, batches, samples; nothing: left out
    repaired_with: tuple = tuple(COVERAGE_DRIVEN)  # in RQ4; DH-D and DH-N are the two halves of DeepHunter


@dataclasses.dataclass(frozen=True)
class Subject:
    data: str
    model: str
    seed: int
    questions: str    # such as "1234"
    amounts: Amounts
    given: str = ""   # a model that is not trained here

    @property
    def name(self):
        return f"{self.data}-{self.model}-{self.seed}"

    @property
    def train(self):
        return f"{self.data}:train[0:{self.amounts.train}]"

    @property
    def tests(self):
        return f"{self.data}:test[0:{self.amounts.tests}]"

    @property
    def clean(self):
        return f"{self.data}:test[0:{self.amounts.clean}]"

    @property
    def eps(self):
        return EPS[self.data][0]

    @property
    def small_eps(self):
        return EPS[self.data][1]

    @property
    def original(self):
        return self.given or f"{self.name}/original.onnx"

    @property
    def preprocessing(self):
        return RESNET_PREPROCESSING if self.given else ()

    @property
    def rate(self):
        """Of retraining: what is usual for a LeNet makes a ResNet diverge."""
        return ("--optimizer", "sgd:lr=0.001") if self.given else ()


LENETS = ("lenet1", "lenet4", "lenet5")
SMOKE = Amounts(train=1000, epochs=3, tests=30, clean=200, energy=4, steps=5, parts=2, per_image=1, most=10, retrain=1, clever=(2, 4, 6),
                repaired_with=("dh-d", "dh-n"))
SMALL = Amounts(train=12000, epochs=6, tests=300, clean=10000, energy=8, steps=10, parts=4, per_image=4, most=50, retrain=2,
                clever=(), repaired_with=("dh-d", "dh-n"))
SMALL_COLOUR = Amounts(train=2000, epochs=0, tests=100, clean=1000, energy=5, steps=10, parts=2, per_image=2, most=20, retrain=2,
                       clever=())
PAPER = Amounts(train=60000, epochs=10, tests=10000, clean=10000, energy=64, steps=40, parts=10, per_image=1, most=0, retrain=5,
                clever=(100, 500, 1024))


def subjects(scale, resnet20):
    if scale == "smoke":
        return [Subject("digits", "lenet1", 1, "1234", SMOKE), Subject("digits", "lenet1", 2, "3", SMOKE)]
    if scale == "small":
        asked = {"lenet1": ("1234", "1234", "123"), "lenet4": ("234", "234", "23"), "lenet5": ("234", "234", "23")}
        lenets = [Subject(data, model, seed, asked[model][seed - 1], SMALL) for seed in (1, 2, 3)
                  for data in ("mnist", "fashion-mnist") for model in LENETS]
        return lenets + [Subject("cifar10", "resnet20", seed, questions, SMALL_COLOUR, resnet20)
                         for seed, questions in ((1, "23"), (2, "23"), (3, "2")) if resnet20]
    lenets = [Subject(data, model, seed, "1234", PAPER) for seed in range(1, 11) for data in ("mnist", "fashion-mnist")
              for model in LENETS]
    colour = dataclasses.replace(PAPER, train=50000)
    return lenets + [Subject("cifar10", "resnet20", seed, "1234", colour, resnet20) for seed in range(1, 11) if resnet20]


class Measurements:
    def __init__(self, study):
        self.study = study

    def step(self, subject, name, verb, *arguments, output=None, writes=(), model=None):
        """A step of a subject, on its original model unless another is named."""
        if model is None:
            self.prepare(subject)
        words = [model or subject.original, *arguments, *subject.preprocessing, "--seed", subject.seed]
        return self.study.step(f"{subject.name}/{name}", verb, *words, output=output, writes=writes)

    def exported(self, subject, name, *arguments):
        """Faults of the campaign of this name, as a file."""
        return self.study.step(f"{subject.name}/{name}-tests", "export", f"{subject.name}/{name}", *arguments, "--distinct", "--to", "npz",
                               output=".npz")

    def prepare(self, subject):
        """The model under test, trained from a seed of its own; {accuracy}."""
        return self.study.once(subject.name, lambda: {"accuracy": self.original(subject)["accuracy"]})

    def original(self, subject):
        if subject.given:
            return self.step(subject, "original", "predict", "--data", subject.clean, model=subject.given)
        return self.step(subject, "original", "train", "--data", subject.train, "--test", subject.clean, "--epochs",
                         subject.amounts.epochs, output=".onnx", model=subject.model)

    def plain(self, subject):
        """The control of all retraining: as much of it, with the training images alone. (model, accuracy)"""
        said = self.step(subject, "plain", "train", "--data", subject.train, "--test", subject.clean, "--epochs",
                         subject.amounts.retrain, *(subject.rate or ("--optimizer", "sgd:lr=0.01")), output=".onnx")
        return f"{subject.name}/plain.onnx", said["accuracy"]

    # Tests that a method makes of test images, on any model: how many break it, and at what cost.
    def fuzzed(self, subject, name, method, model=None):
        n, energy = subject.amounts.tests, subject.amounts.energy
        how = {"random": ("--guide", "random", "--mutators", "deephunter"),
               "noise": ("--guide", "random", "--generator", f"noise:eps={subject.eps}")}.get(method, ("--method", method))
        profile = ("--train", subject.train) if method in COVERAGE_DRIVEN else ()
        said = self.step(subject, name, "fuzz", "--data", subject.tests, *profile, *how, "--scheduler", "sweep", "--seeds", n,
                         "--energy", energy, "--iterations", 2 * n, output="", model=model)
        return {"mr": said["rft_all"], "broken": said["broken_share"], "passes": said["passes"] / max(said["tried_seeds"], 1),
                "tests": said["valid"]}

    def attacked(self, subject, name, method, eps, model=None):
        spec = f"pgd:steps={subject.amounts.steps}" if method == "pgd" else method
        said = self.step(subject, name, "attack", "--data", subject.tests, "--method", spec, "--eps", eps, output="", model=model)
        rate = sum(c["broken"] for c in said["classes"]) / max(said["tried"], 1)
        return {"mr": rate, "broken": rate, "passes": said["passes"] / max(said["tried"], 1), "tests": said["tried"]}

    def quality(self, subject, name, model):
        """The paper's metrics of a model: of PGD's examples of it. MR is the share of attacked inputs that broke."""
        found = self.attacked(subject, f"{name}-pgd", "pgd", subject.small_eps, model)
        if found["mr"] == 0:
            return {"mr": 0.0}
        said = self.step(subject, f"{name}-quality", "quality", "--tests", f"{subject.name}/{name}-pgd", model=model)
        metrics = common.metrics_of(said)
        metrics.pop("asr", None)
        return {**metrics, "mr": found["mr"]}

    # RQ1: tests that raise the coverage of the original model, more and more of them; models retrained with them.
    def rq1(self, subject):
        amounts, unit = subject.amounts, ("--neurons", "unit")
        profile, state = f"{subject.name}/rq1-profile", f"{subject.name}/rq1-state"
        self.step(subject, "rq1-profile", "profile", "--data", subject.train, *unit, output="")
        covered = self.step(subject, "rq1-coverage", "cover", "--data", subject.train, "--profile", profile, "--criteria", CRITERIA,
                            *unit, "--save-state", state, writes=(state,))
        plain, accuracy = self.plain(subject)
        start = {"coverage": coverage_of(covered), "tests": 0, "quality": self.quality(subject, "plain", plain), "clean": accuracy}
        seeds = min(amounts.train, 4 * amounts.tests)
        campaign = ("--data", subject.train, "--train", subject.train, "--profile-size", "all", "--mutators", "deephunter",
                    "--scheduler", "sweep", "--seeds", seeds, "--energy", amounts.energy)
        guided = self.step(subject, "rq1-guided", "fuzz", *campaign, "--guide", "nbc", *unit, "--absorb", "train", "--iterations",
                           2 * seeds, output="")
        random = self.step(subject, "rq1-random", "fuzz", *campaign, "--guide", "random", "--iterations", 2 * seeds, output="")
        found = {"guided": self.exported(subject, "rq1-guided", "--kept"), "random": self.exported(subject, "rq1-random")}
        most = min(said["exported"] for said in found.values())
        series = {"guided": [start], "random": [start]}
        for kind, points in series.items():
            for part in range(1, amounts.parts + 1):
                tests = f"{subject.name}/rq1-{kind}-tests.npz[0:{max(2, most * part // amounts.parts)}]"
                points.append(self.augmented(subject, f"rq1-{kind}-{part}", tests, profile, state, unit))
        return {"series": series, "kept": guided["kept_faults"], "faults": (guided["faults"], random["faults"])}

    def augmented(self, subject, name, tests, profile, state, unit):
        covered = self.step(subject, f"{name}-coverage", "cover", "--data", tests, "--profile", profile, "--criteria", CRITERIA, *unit,
                            "--state", state)
        said = self.step(subject, name, "repair", "--tests", tests, "--data", subject.train, "--clean", subject.clean, "--mix", 0,
                         "--held-out", 0, "--per-seed", 0, "--epochs", subject.amounts.retrain, "--control", "none", *subject.rate, output=".onnx")
        return {"coverage": coverage_of(covered), "tests": said["trained_tests"], "clean": said["figures"]["clean-after"],
                "quality": self.quality(subject, f"{name}-model", f"{subject.name}/{name}.onnx")}

    # RQ2: algorithm 1 with tests that raise coverage, with tests that do not, and with any.
    def rq2(self, subject):
        found = {kind: self.refined(subject, f"rq2-{kind}", keep)
                 for kind, keep in (("improving", "coverage-improving"), ("remaining", "coverage-remaining"), ("all", "all"))}
        if not subject.given:
            model, _ = self.plain(subject)  # whose clean accuracy is of other images than the loop's
            found["plain"] = {**self.quality(subject, "plain", model), **self.clever(subject, "plain", model)}
        return found

    def refined(self, subject, name, keep):
        amounts = subject.amounts
        k = min(amounts.parts, 3) if amounts.most else amounts.parts
        clean = f"{subject.data}:test[0:{min(amounts.clean, 5 * amounts.train // k // 10)}]"  # mutated as well, so as many as half a part
        said = self.step(subject, name, "repair", "--loop", f"k={k},per_image={amounts.per_image},most={amounts.most}", "--keep", keep, "--criterion", "nbc",
                         "--neurons", "unit", "--generator", "mutate:set=deephunter", "--data", subject.train, "--clean", clean,
                         "--epochs", 4 * amounts.retrain, "--control", "none", *subject.rate, output=".onnx")
        model = f"{subject.name}/{name}.onnx"
        return {**self.quality(subject, f"{name}-model", model), "clean": said["figures"]["clean-after"],
                "held-out": said["figures"]["tests-after"], **self.clever(subject, name, model),
                "kept": [r["kept"] for r in said["rounds"]], "improving": [r["improving"] for r in said["rounds"]]}

    def clever(self, subject, name, model):
        if not subject.amounts.clever:
            return {}
        inputs, batches, samples = subject.amounts.clever
        said = self.step(subject, f"{name}-clever", "quality", "--clever", "--data", subject.tests, "--inputs", inputs, "--batches",
                         batches, "--samples", samples, model=model)
        scores = [one["score"] for one in said["clever"]["inputs"]]
        return {"clever": sum(scores) / len(scores)}

    # RQ3: how often tests break the model, by method; what mutation without a guide and noise do at the same cost.
    def rq3(self, subject):
        found = {method: self.fuzzed(subject, f"rq3-{method}", method) for method in (*COVERAGE_DRIVEN, "random", "noise")}
        return {**found, **{method: self.attacked(subject, f"rq3-{method}", method, subject.eps) for method in ("fgsm", "pgd")}}

    # RQ4: models retrained with each method's tests of training images, and what they withstand.
    def rq4(self, subject):
        models = {"original": (subject.original, self.prepare(subject)["accuracy"])}
        amounts = subject.amounts
        training = ("--data", subject.train, "--clean", subject.clean, "--control", "none", *subject.rate)
        models["plain"] = self.plain(subject)
        for method in amounts.repaired_with:
            seeds = min(amounts.train, 4 * amounts.tests)
            self.step(subject, f"rq4-{method}-made", "fuzz", "--data", subject.train, "--train", subject.train, "--method", method,
                      "--scheduler", "sweep", "--seeds", seeds, "--energy", amounts.energy, "--iterations", seeds, output="")
            # As in the paper everything that was generated, not faults alone: of DH-D there may be none.
            kept = self.exported(subject, f"rq4-{method}-made", "--what", "outputs")["exported"]
            tests = f"{subject.name}/rq4-{method}-made-tests.npz[0:{min(kept, seeds)}]"
            said = self.step(subject, f"rq4-{method}", "repair", "--tests", tests, *training, "--per-seed", 0, "--held-out", 0, "--epochs",
                             2 * amounts.retrain, output=".onnx")
            models[method] = (f"{subject.name}/rq4-{method}.onnx", said["figures"]["clean-after"])
        for method, steps in (("fgsm", f"steps=1,step={subject.small_eps}"), ("pgd", "steps=5")):
            said = self.step(subject, f"rq4-{method}", "repair", "--adversarial", f"pgd:eps={subject.small_eps},{steps}", *training,
                             "--epochs", amounts.retrain, output=".onnx")
            models[method] = (f"{subject.name}/rq4-{method}.onnx", said["figures"]["clean-after"])
        return {name: self.withstood(subject, name, model, clean) for name, (model, clean) in models.items()}

    def withstood(self, subject, name, model, clean):
        """Accuracy on clean images and on tests that each method makes anew, against this model."""
        found = {"clean": clean}
        for method in subject.amounts.repaired_with:
            step = f"rq3-{method}" if name == "original" else f"rq4-{name}-{method}"
            found[method] = 1 - self.fuzzed(subject, step, method, model)["mr"]
        found["pgd"] = 1 - self.attacked(subject, f"rq4-{name}-pgd", "pgd", subject.small_eps, model)["mr"]
        return found


def coverage_of(said):
    return {c["id"]: c["score"] for c in said["criteria"]}


def main():
    parser = common.arguments(__doc__.split("\n")[0], ("smoke", "small", "paper"))
    parser.add_argument("--resnet20", default=common.ROOT.parent / "shared/data/resnet20-cifar10.onnx",
                        help="a ResNet-20 of CIFAR-10 (default: ../shared/data/resnet20-cifar10.onnx); left out where there is none")
    common.part_arguments(parser, "such as cifar10-resnet20-*", "such as rq2")
    parser.add_argument("--beside", type=common.pathlib.Path, action="append", default=[], metavar="CSV",
                        help="figures of an earlier part, which join the hypotheses")
    given = parser.parse_args()
    study, output = common.open_study("revisiting", given)
    common.name_part(given, "revisiting", ("rq1", "rq2", "rq3", "rq4"))
    resnet20 = str(given.resnet20) if common.pathlib.Path(given.resnet20).is_file() else ""
    all_subjects = common.chosen(subjects(given.scale, resnet20), given)
    measurements = Measurements(study)
    missing = {}

    def tried(question, subject):
        try:
            return getattr(measurements, question)(subject)
        except common.Missing:
            missing.setdefault(question, []).append(subject.name)
            return None
    # Seed by seed, the quick questions first, so that a study that is stopped has something to show.
    asked = sorted(((f"rq{number}", s) for s in all_subjects for number in s.questions),
                   key=lambda task: (bool(task[1].given), task[1].seed, "3241".index(task[0][-1])))
    if given.questions:
        asked = [task for question in given.questions for task in asked if task[0] == question]
    tasks = [("prepare", s) for s in all_subjects] + asked
    results = study.each(lambda task: tried(*task), tasks)
    found = {question: [] for question in ("prepare", "rq1", "rq2", "rq3", "rq4")}
    for (question, subject), result in zip(tasks, results):
        if result is not None:
            found[question].append((subject, result))
    revisiting_results.write(study, output, given, found, missing)
    print(f"{study.steps} steps, {study.repeated} of them from before, {study.seconds / 60:.1f} minutes of steps; results in {output}")
    return 0


if __name__ == "__main__":
    common.run(main)
