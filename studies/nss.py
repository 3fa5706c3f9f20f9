#!/usr/bin/env python3
"""Which inputs are worth a label: the tables of Huang et al. (NSS, TOSEM 2024), with controls and what came after.

usage: ./dev study nss --scale smoke|small|paper        docs/studies.md says what is done and why

This file makes the measurements; nss_results.py makes tables of them, nss_paper.py has the paper's.
"""
import csv
import dataclasses

import common
import nss_results

KINDS = ("shift", "rotation", "scale", "shear", "contrast", "brightness", "blur")
SIZES = (1, 5, 10, 20, 100)
QUICK = "random,softmax,gini,entropy,pcs,internal-gini,nss,nss:pair=original,flip,nac,kmnc,npc,dsa,lsa,mdsa,ats,datis,sets,nns"
FUSED = "fused:with=output,fused:with=train,fused:with=originals,fused"
HARD = "random,softmax,gini,pcs,nss,nss:pair=original,flip,dsa,lsa,mdsa,ats,datis,nns,fused:with=output,fused:with=train,fused"
RETRAINED_WITH = ("random", "gini", "nss", "nss:pair=original", "flip", "datis", "fused")
# Of table 3. Digits are ours.
ACCURACY = {("mnist", "lenet1"): 0.8950, ("mnist", "lenet5"): 0.9179, ("fashion-mnist", "lenet1"): 0.7899,
            ("fashion-mnist", "resnet20"): 0.8612, ("cifar10", "resnet20"): 0.8607, ("cifar10", "vgg16"): 0.8252,
            ("digits", "lenet1"): 0.8950}


@dataclasses.dataclass(frozen=True)
class Amounts:
    train: str        # slice of the training images for models that stop at the paper's accuracy
    epochs: int       # at most
    rate: str         # of learning
    well: tuple       # slice and epochs of well-trained models
    tested: int       # test images that say when to stop
    pool: int
    reference: int    # training images that selectors compare with
    repeats: int      # seeds of selectors that are random
    samples: int      # of mc-dropout
    mutants: int      # of prima
    retrain: int      # epochs of table 10
    retrained_with: tuple = RETRAINED_WITH
    kinds: tuple = KINDS   # of mutations, in tables 14 and 15
    start: str = ""   # a model file that training starts from, in place of drawn weights
    goes_on: bool = False  # a well-trained model is the other one, trained further


@dataclasses.dataclass(frozen=True)
class Subject:
    data: str
    model: str        # architecture
    well: bool        # trained to the end, not to the paper's accuracy
    seed: int         # of the pool, and of training where every seed has its own model
    trained: int      # seed of the model
    questions: tuple
    amounts: Amounts
    spec: str = ""    # of the architecture, where it is not its usual form
    given: str = ""   # a model that is not trained here

    @property
    def kind(self):
        return "well" if self.well else "under"

    @property
    def name(self):
        return f"{self.data}-{self.model}-{self.kind}-{self.seed}"

    @property
    def file(self):
        return self.given or f"models/{self.data}-{self.model}-{self.kind}-{self.trained}.onnx"

    @property
    def originals(self):
        """Images of their own for every seed, as far as there are enough."""
        n = self.amounts.pool
        first = (self.seed - 1) * n % max(n, 10000 // n * n)
        return f"{self.data}:test[{first}:{first + n}]"

    @property
    def pool(self):
        return f"pools/{self.data}-{self.amounts.pool}-{self.seed}.npz"

    @property
    def train(self):
        return f"{self.data}:train[0:{self.amounts.reference}]"


LENET = Amounts("[0:12000]", 4, "0.003", ("", 2), 10000, 4000, 10000, 3, 100, 100, 4)
GRAY_RESNET = Amounts("[0:20000]", 3, "0.05", ("[0:40000]", 2), 2000, 2000, 5000, 2, 20, 20, 0)
RESNET = Amounts("[0:2000]", 5, "0.002", ("", 0), 2000, 2000, 5000, 2, 20, 20, 0, start="models/given.onnx")
VGG = Amounts("", 14, "0.05", ("", 4), 2000, 2000, 5000, 2, 20, 20, 0, goes_on=True)
SMOKE = Amounts("[0:2000]", 4, "0.003", ("[0:2000]", 4), 300, 300, 300, 2, 3, 4, 1, ("random", "fused"), KINDS[:2])
NARROW_VGG = "vgg16:bn=true,head=linear,width=16"
PAPER_VGG = "vgg16:bn=true,head=large,head_bn=true"
ALL = ("rates", "dropout", "prima", "fused", "correlation", "sizes", "layers", "hard")


def subjects(scale, resnet20):
    if scale == "smoke":
        more = ("kinds", "costs", "retrain")
        return [Subject("digits", "lenet1", False, 1, 1, (*ALL, *more), SMOKE), Subject("digits", "lenet1", False, 2, 2, ("rates", "fused"), SMOKE),
                Subject("digits", "lenet1", True, 1, 1, ("rates", "dropout", "prima", "fused"), SMOKE)]
    if scale == "paper":
        return paper_subjects(resnet20)
    found = []
    for data, model in (("mnist", "lenet1"), ("mnist", "lenet5"), ("fashion-mnist", "lenet1")):
        found += [Subject(data, model, False, seed, seed, (*ALL, "kinds", "costs", "retrain") if seed == 1 else ALL[:5], LENET) for seed in (1, 2, 3)]
        found += [Subject(data, model, True, seed, seed, ("rates", "dropout", "prima", "fused", "hard") if seed == 1 else ("rates", "fused"), LENET) for seed in (1, 2)]
    large = [("fashion-mnist", "resnet20", "resnet20", GRAY_RESNET, ""), ("cifar10", "vgg16", NARROW_VGG, VGG, "")]
    if resnet20:
        large.insert(1, ("cifar10", "resnet20", "resnet20", RESNET, "models/given.onnx"))
    for data, model, spec, amounts, given in large:
        kinds = ("kinds",) if data == "cifar10" else ()
        found += [Subject(data, model, well, seed, 1, (*ALL, *kinds, "costs") if seed == 1 and not well else ALL[:4] if seed == 1 else ("rates", "fused"),
                          amounts, spec, given if well else "") for well in (False, True) for seed in (1, 2)]
    return found


def paper_subjects(resnet20):
    lenet = dataclasses.replace(LENET, train="", pool=10000, reference=60000, repeats=5, samples=200, retrain=40)
    large = dataclasses.replace(lenet, rate="0.05", epochs=40, well=("", 60), tested=10000, reference=50000)
    kinds = [("mnist", "lenet1", "", lenet), ("mnist", "lenet5", "lenet5:padding=valid", lenet), ("fashion-mnist", "lenet1", "", lenet),
             ("fashion-mnist", "resnet20", "", large), ("cifar10", "resnet20", "", large), ("cifar10", "vgg16", PAPER_VGG, large)]
    more = {"cifar10": ("kinds",)}
    return [Subject(data, model, well, seed, seed, (*ALL, *more.get(data, ()), "costs", "retrain"), amounts, spec)
            for seed in range(1, 6) for data, model, spec, amounts in kinds for well in (False, True)]


class Measurements:
    def __init__(self, study):
        self.study = study

    def step(self, subject, name, verb, *arguments, output=None, writes=()):
        self.prepare(subject)
        return self.study.step(f"{subject.name}/{name}", verb, *arguments, "--seed", subject.seed, output=output, writes=writes)

    def model(self, subject):
        """The model under test; {accuracy}."""
        a, name = subject.amounts, subject.file.removesuffix(".onnx")
        tests = f"{subject.data}:test[0:{a.tested}]"
        if subject.given:
            return self.study.step(f"{name}-accuracy", "predict", subject.file, "--data", tests)
        start = subject.spec or subject.model
        if subject.well:
            part, epochs = a.well
            how = ("--data", f"{subject.data}:train{part}", "--epochs", epochs)
            if a.goes_on:
                weak = dataclasses.replace(subject, well=False)
                self.study.once(weak.file, lambda: self.model(weak))
                start = weak.file
        else:
            if a.start:
                # Well trained already: first made worse, then trained until it is as good as the paper's.
                self.study.step(f"{name}-disturbed", "train", a.start, "--data", f"{subject.data}:train[0:2000]", "--test", tests, "--epochs", 1,
                                "--optimizer", "sgd:lr=0.03", "--schedule", "constant", "--seed", subject.trained, output=".onnx")
                start = f"{name}-disturbed.onnx"
            how = ("--data", f"{subject.data}:train{a.train}", "--epochs", a.epochs, "--optimizer", f"sgd:lr={a.rate}", "--underfit",
                   ACCURACY[subject.data, subject.model])
        return self.study.step(name, "train", start, *how, "--test", tests, "--seed", subject.trained, output=".onnx")

    def make_pool(self, subject, file, mutators):
        self.study.once(file, lambda: self.study.step(file.removesuffix(".npz"), "mutate", "--data", subject.originals, "--set", mutators, "--one-each",
                                                "--seed", subject.seed, output=".npz"))

    def prepare(self, subject):
        said = self.study.once(subject.file, lambda: self.model(subject))
        self.make_pool(subject, subject.pool, "nss")
        return {"accuracy": said["accuracy"]}

    def evaluated(self, subject, name, by, *more, pool=None, originals=None, repeats=None):
        """{selector: figures} of a pool, in the order that they were named."""
        said = self.step(subject, name, "select", subject.file, "--data", pool or subject.pool, "--originals", originals or subject.originals,
                         "--by", by, "--evaluate", "--repeats", repeats or subject.amounts.repeats, *more)
        found = {one["name"]: {"fdr": [at["fdr"]["mean"] for at in one["at"]], "interval": [at["fdr"]["interval"] for at in one["at"]],
                               "rauc": [at["rauc"]["mean"] for at in one["at"]], "apfd": one["apfd"]["mean"], "types": one["apfd_types"]["mean"],
                               "seconds": one["seconds"]} for one in said["selectors"]}
        return {"faults": said["faults"] / said["inputs"], "by": found}

    # Tables 1, 7, 8 and 9.
    def rates(self, subject):
        return self.evaluated(subject, "rates", QUICK, "--train", subject.train)

    def dropout(self, subject):
        return self.evaluated(subject, "dropout", f"mc-dropout:samples={subject.amounts.samples}", repeats=1)

    def prima(self, subject):
        return self.evaluated(subject, "prima", f"prima:mutants={subject.amounts.mutants}", "--train", subject.train, repeats=1)

    def fused(self, subject):
        return self.evaluated(subject, "fused", FUSED, "--train", subject.train)

    # Table 6: is accuracy lower where the score is higher? Ten parts of the pool by score.
    def correlation(self, subject):
        labels = self.labels(subject)
        found = {}
        for reading in ("nss", "nss:pair=original"):
            name = f"{subject.name}/order-{reading.split('=')[-1]}"
            self.step(subject, f"order-{reading.split('=')[-1]}", "select", subject.file, "--data", subject.pool, "--originals", subject.originals,
                      "--by", reading, "--top", "100%", "--skip-broken", output=".csv")
            right = [int(row["predicted"]) == labels[int(row["index"])] for row in self.table(f"{name}.csv")][::-1]
            n = len(right)
            parts = [right[n * i // 10:n * (i + 1) // 10] for i in range(10)]
            found[reading] = [sum(part) / len(part) for part in parts]
        return found

    def table(self, path):
        with open(self.study.work / path, newline="") as file:
            return list(csv.DictReader(file))

    def verdicts(self, subject):
        return self.step(subject, "verdicts", "predict", subject.file, "--data", subject.pool)["predictions"]

    def labels(self, subject):
        return [row["label"] for row in self.verdicts(subject)]

    # Table 12.
    def sizes(self, subject):
        by = ",".join(f"nss:k={k}{pair}" for pair in ("", ",pair=original") for k in SIZES)
        return self.evaluated(subject, "sizes", by)

    # Table 13: the first and second layer of the encoder, the last but one and the last; and the output.
    def layers(self, subject):
        taps = self.study.step(f"{subject.name}/taps", "inspect", subject.file)["taps"]
        encoder = [tap["name"] for tap in taps if tap["kind"] == "conv"]
        names = {"Layer1": encoder[0], "Layer2": encoder[1], "Layer -2": encoder[-2], "Layer -1": "encoder", "Gini-Layer": taps[-1]["name"]}
        by = list(dict.fromkeys(f"nss:layer={tap}{pair}" for pair in ("", ",pair=original") for tap in names.values()))
        return {"names": names, **self.evaluated(subject, "layers", ",".join(by))}

    # Tables 14 and 15: one kind of mutation alone, to find sensitive neurons with, and to score with. What an input is compared with is
    # its original in the second reading, so there the pool has one kind of mutants.
    def kinds(self, subject):
        find = ",".join(f"nss:find=nss:only={kind}{pair}" for pair in ("", ",pair=original") for kind in subject.amounts.kinds)
        score = ",".join(f"nss:set=nss:only={kind},find=nss" for kind in subject.amounts.kinds)
        found = {"find": self.evaluated(subject, "kinds-find", find), "score": self.evaluated(subject, "kinds-score", score), "pools": {}}
        for kind in subject.amounts.kinds:
            pool = subject.pool.replace(".npz", f"-{kind}.npz")
            self.make_pool(subject, pool, f"nss:only={kind}")
            found["pools"][kind] = self.evaluated(subject, f"kinds-{kind}", "nss:pair=original,gini,random,flip", pool=pool)
        return found

    # Table 11.
    def costs(self, subject):
        def seconds(name, by):
            said = self.step(subject, name, "select", subject.file, "--data", subject.pool, "--by", by, "--top", "20%", "--skip-broken")
            times, own = said["times"], said["selectors"][0]["seconds"]
            return {"sample": times["sample"], "all": times["passes"] + times["mutating"] + own}
        return {"nss": seconds("costs-nss", "nss"), "every neuron": seconds("costs-all", "nss:k=100,sample=100"), "gini": seconds("costs-gini", "gini")}

    # Pools that are hard for selectors, with the same share of faults as the whole: the third of the faults that the model is surest of
    # with every third right input; the half of the right inputs that it is least sure of with every second fault.
    def hard(self, subject):
        rows = self.verdicts(subject)
        sure = sorted(range(len(rows)), key=lambda i: -max(rows[i]["probabilities"]))
        wrong = [i for i in sure if rows[i]["label"] != rows[i]["predicted"]]
        right = [i for i in sure if rows[i]["label"] == rows[i]["predicted"]]
        pools = {"confident": wrong[:len(wrong) // 3] + right[::3], "uncertain": wrong[::2] + right[len(right) // 2:]}
        originals = subject.pool.replace(".npz", "-originals")
        self.study.once(originals, lambda: self.study.step(originals, "data", "export", subject.originals, "--to", "npz", output=".npz"))
        found = {"whole": self.evaluated(subject, "hard-whole", HARD, "--train", subject.train)}
        for name, chosen in pools.items():
            files = {}
            for what, source in (("pool", subject.pool), ("originals", f"{originals}.npz")):
                files[what] = f"{subject.name}/{name}-{what}.npz"
                common.write_rows(self.study.work / source, self.study.work / files[what], sorted(chosen))
            found[name] = self.evaluated(subject, f"hard-{name}", HARD, "--train", subject.train, pool=files["pool"], originals=files["originals"])
        return found

    # Table 10: the labels of the picks are filled in and the model is trained with them; the control is as much training without.
    def retrain(self, subject):
        labels = self.labels(subject)
        other = dataclasses.replace(subject, seed=subject.seed + 1)
        self.make_pool(other, other.pool, "nss")
        train = f"{subject.data}:train{subject.amounts.train}"
        training = ("--data", train, "--clean", f"{subject.data}:test[0:{subject.amounts.tested}]", "--mix", 0, "--held-out", 0,
                    "--per-seed", 0, "--clean-loss", 1, "--epochs", subject.amounts.retrain, "--optimizer", "sgd:lr=0.01", "--control", "none")
        found = {}
        for by in subject.amounts.retrained_with:
            for share in (5, 20):
                name = f"retrain-{by.replace(':', '_').replace('=', '-')}-{share}"
                self.step(subject, f"{name}-picks", "select", subject.file, "--data", subject.pool, "--originals", subject.originals, "--train",
                          subject.train, "--by", by, "--top", f"{share}%", "--skip-broken", output=".csv")
                filled = f"{subject.name}/{name}-labelled.csv"
                self.fill(f"{subject.name}/{name}-picks.csv", filled, labels)
                said = self.step(subject, name, "repair", subject.file, "--tests", filled, *training, output=".onnx")
                found[by, share] = self.after(subject, name, other, said["figures"])
        epochs = max(1, subject.amounts.retrain)
        self.step(subject, "retrain-plain", "train", subject.file, "--data", train, "--test", f"{subject.data}:test[0:{subject.amounts.tested}]", "--epochs", epochs, "--optimizer", "sgd:lr=0.01", output=".onnx")
        plain = self.step(subject, "retrain-plain-clean", "predict", f"{subject.name}/retrain-plain.onnx", "--data", f"{subject.data}:test[0:{subject.amounts.tested}]")
        first = self.step(subject, "retrain-before-clean", "predict", subject.file, "--data", f"{subject.data}:test[0:{subject.amounts.tested}]")
        before = self.step(subject, "retrain-before-pool", "predict", subject.file, "--data", other.pool)
        found["plain"] = self.after(subject, "retrain-plain", other, {"clean-after": plain["accuracy"]})
        found["before"] = {"clean": first["accuracy"], "pool": before["accuracy"]}
        return found

    def after(self, subject, name, other, figures):
        """Accuracy on clean images, and on mutants of other images than those that were picked from."""
        said = self.step(subject, f"{name}-pool", "predict", f"{subject.name}/{name}.onnx", "--data", other.pool)
        return {"clean": figures["clean-after"], "pool": said["accuracy"]}

    def fill(self, source, target, labels):
        rows = self.table(source)
        with open(self.study.work / target, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows({**row, "label": labels[int(row["index"])]} for row in rows)


def main():
    parser = common.arguments(__doc__.split("\n")[0], ("smoke", "small", "paper"))
    parser.add_argument("--resnet20", default=common.ROOT.parent / "shared/data/resnet20-cifar10.onnx",
                        help="a ResNet-20 of CIFAR-10 (default: ../shared/data/resnet20-cifar10.onnx); left out where there is none")
    common.part_arguments(parser, "such as cifar10-vgg16-*-1", "such as rates,fused")
    parser.add_argument("--beside", type=common.pathlib.Path, action="append", default=[], metavar="CSV",
                        help="figures of an earlier part, which join the ranks and the comparison of NSS with its rivals")
    given = parser.parse_args()
    study, output = common.open_study("nss", given)
    common.name_part(given, "nss", (*ALL, "kinds", "costs", "retrain"))
    given_model = common.given_resnet20(given.resnet20, study.work / "models/given.onnx")
    all_subjects = common.chosen(subjects(given.scale, given_model), given)
    measurements = Measurements(study)
    missing = {}

    def tried(question, subject):
        try:
            return getattr(measurements, question)(subject)
        except common.Missing:
            missing.setdefault(question, []).append(subject.name)
            return None
    # The quick models first, so that a study that is stopped has something to show; questions that were named, in their order.
    asked = [(question, s) for s in all_subjects for question in ("prepare", *s.questions)]
    if given.questions:
        asked = [(question, s) for question in ("prepare", *given.questions) for s in all_subjects if question in ("prepare", *s.questions)]
    results = study.each(lambda task: tried(*task), asked)
    found = {}
    for (question, subject), result in zip(asked, results):
        if result is not None:
            found.setdefault(question, []).append((subject, result))
    nss_results.write(study, output, given, found, missing)
    print(f"{study.steps} steps, {study.repeated} of them from before, {study.seconds / 60:.1f} minutes of steps; results in {output}")
    return 0


if __name__ == "__main__":
    common.run(main)
