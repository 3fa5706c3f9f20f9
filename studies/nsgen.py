#!/usr/bin/env python3
"""NSGen: do reasons in words find more faults than coverage? The tables of Huang et al. (TOSEM 2024), with controls.

usage: ./dev study nsgen --scale smoke|small|paper        docs/studies.md says what is done and why

This file makes the measurements; nsgen_results.py makes tables and figures of them.
"""
import dataclasses

import common
import nsgen_results

COVERAGE = ("nc", "kmnc", "nbc", "snac", "tknc", "tknp", "cc", "lsc", "dsc", "mdsc", "cac", "nlc")
# What is left out of NSGen, and what of it alone is kept: the paper's ablations, and controls of ours.
VARIANTS = {"without choice": "select=all", "without words": "text=off", "label alone": "words=label", "neurons alone": "words=neurons"}
RESNET_PREPROCESSING = ("--mean", ".485,.456,.406", "--std", ".229,.224,.225")


@dataclasses.dataclass(frozen=True)
class Amounts:
    train: int          # images to train on, and for profiles
    epochs: int
    look: int           # training images that neurons are described with
    tests: int          # test images that seeds are chosen from
    seeds: int
    energy: int         # mutants of a pick at most: it ends with the first that is kept
    iterations: int     # picks
    outputs: int        # of table 12
    time: str           # of the comparison at equal time
    share: str          # of each class, for the threshold
    shares: tuple       # of table 9
    flow: str           # how conductance is measured
    layers: tuple       # of figure 6; others than all
    counts: tuple       # of table 6: pictures a neuron
    guides: tuple       # of table 3
    repair: tuple       # epochs, clean images; nothing: table 13 is left out
    repaired_with: tuple = ("nsgen", "nlc", "random")
    mapped: tuple = ("kmnc", "dsc", "nlc", "random", "nsgen")  # of figure 8
    captioner: tuple = (1000, 8)  # of table 7: neurons, epochs at most


@dataclasses.dataclass(frozen=True)
class Subject:
    data: str
    model: str
    seed: int
    amounts: Amounts
    parts: str           # which tables: letters of TABLES
    given: str = ""      # a model that is not trained here
    spec: str = ""       # of the model that is; its name will do
    photos: str = ""     # a folder in place of data with parts for training and testing; it has no labels but the model's own

    @property
    def place(self):
        """Of what all seeds of a model share."""
        return f"{self.data}-{self.model}"

    @property
    def name(self):
        return f"{self.place}-{self.seed}"

    @property
    def train(self):
        return self.photos or f"{self.data}:train[0:{self.amounts.train}]"

    @property
    def tests(self):
        return self.photos or f"{self.data}:test[0:{self.amounts.tests}]"

    @property
    def look(self):
        return self.photos or f"{self.data}:train[0:{self.amounts.look}]"

    @property
    def onnx(self):
        return self.given or f"{self.place}/model.onnx"

    @property
    def preprocessing(self):
        return RESNET_PREPROCESSING if self.model == "resnet20" else ()

    @property
    def outputs_layer(self):
        return {"lenet1": "fc1", "lenet5": "fc3", "resnet20": "linear"}[self.model]


TABLES = {"a": "guides", "b": "equal_time", "c": "equal_outputs", "d": "variants", "e": "encoders", "f": "layers", "g": "labels", "h": "thresholds",
          "i": "counts", "j": "repaired", "k": "map", "l": "captioner"}
SINGLE = ("layers", "labels", "thresholds", "counts", "repaired", "map", "captioner")  # of the first seed alone
LSTM = ((128, 512), (128, 128), (128, 256), (128, 1024), (64, 512), (256, 512), (512, 512))  # of table 7: numbers a word, width of the decoder
SMOKE = Amounts(train=1500, epochs=2, look=150, tests=150, seeds=30, energy=4, iterations=16, outputs=10, time="1s", share="0.5%",
                shares=("0.5%", "1%"), flow="steps=3", layers=(1,), counts=(1, 5), guides=("nc", "nlc"), repair=(1, 100), repaired_with=("nsgen", "random"),
                mapped=("nlc", "nsgen"), captioner=(40, 1))
SMALL = Amounts(train=20000, epochs=5, look=2000, tests=2000, seeds=500, energy=16, iterations=400, outputs=200, time="15s", share="0.1%",
                shares=("0.1%", "0.2%", "0.3%"), flow="steps=16,rule=trapezoid", layers=(1, 2, 3, 4), counts=(1, 5, 10, 15, 20),
                guides=COVERAGE, repair=(3, 2000))
SMALL_COLOUR = dataclasses.replace(SMALL, look=1000, tests=1000, seeds=300, energy=8, iterations=120, outputs=60, time="30s", share="0.1%",
                                   shares=("0.1%",), layers=(1, 3), counts=(1, 15), repair=())
SMALL_VGG = dataclasses.replace(SMALL_COLOUR, train=50000, epochs=6)
SMALL_MOBILENET = dataclasses.replace(SMALL_COLOUR, epochs=6)
PHOTOS = dataclasses.replace(SMALL_COLOUR, seeds=60, energy=4, iterations=24, share="8%", shares=("8%",), flow="steps=8,rule=trapezoid", guides=("nc", "kmnc", "nlc"),
                             mapped=("kmnc", "nlc", "random", "nsgen"))
PAPER = Amounts(train=60000, epochs=10, look=60000, tests=10000, seeds=1000, energy=64, iterations=10000, outputs=1000, time="6h", share="1%",
                shares=("1%", "2%", "3%", "4%", "5%"), flow="steps=50", layers=(1, 2, 3, 4), counts=(1, 5, 10, 15, 20), guides=COVERAGE,
                repair=(10, 10000), captioner=(4000, 100))


def subjects(scale, resnet20, imagenet, photos):
    if scale == "smoke":
        return [Subject("digits", "lenet5", seed, SMOKE, parts) for seed, parts in ((1, "abcdefghijkl"), (2, "a"))]
    repeats = range(1, 6)
    if scale == "small":
        found = [Subject("cifar10", "resnet20", seed, SMALL_COLOUR, "abcdhik" if seed == 1 else "abcd", resnet20) for seed in repeats if resnet20]
        found += [Subject("mnist", "lenet5", seed, SMALL, "abcdefghijkl" if seed == 1 else "abcde") for seed in repeats]
        found += [Subject("cifar10", "vgg16", seed, SMALL_VGG, "acdhk" if seed == 1 else "acd", spec="vgg16:bn=true,head=linear,width=16") for seed in repeats]
        found += [Subject("cifar10", "mobilenet_v2", seed, SMALL_MOBILENET, "ah" if seed == 1 else "a", spec="mobilenet_v2:width=0.25") for seed in repeats]
        return found + [Subject("photos", "imagenet", seed, PHOTOS, "ahk" if seed == 1 else "a", imagenet, photos=photos) for seed in repeats if imagenet and photos]
    colour = dataclasses.replace(PAPER, train=50000, look=50000)
    return [Subject("mnist", "lenet5", seed, PAPER, "abcdefghijkl") for seed in repeats] + \
           [Subject("cifar10", "resnet20", seed, colour, "abcdefghijk", resnet20) for seed in repeats if resnet20] + \
           [Subject("cifar10", model, seed, colour, "abcdefghk", spec=spec) for seed in repeats for model, spec in (("vgg16", "vgg16:bn=true"), ("mobilenet_v2", ""))] + \
           [Subject("photos", "imagenet", seed, PAPER, "abcdfghk", imagenet, photos=photos) for seed in repeats if imagenet and photos]


class Measurements:
    def __init__(self, study, text_encoders):
        self.study = study
        self.text_encoders = text_encoders

    def shared(self, subject, name, verb, *arguments, output=None, writes=(), model=None):
        """A step that all seeds of a model share."""
        return self.study.step(f"{subject.place}/{name}", verb, model or subject.onnx, *arguments, *subject.preprocessing, "--seed", 1,
                               output=output, writes=writes)

    def step(self, subject, name, verb, *arguments, output=None, writes=(), model=None):
        return self.study.step(f"{subject.name}/{name}", verb, model or subject.onnx, *arguments, *subject.preprocessing, "--seed",
                               subject.seed, output=output, writes=writes)

    def prepare(self, subject):
        """The model, what its neurons see, and the thresholds of all that is compared."""
        amounts = subject.amounts
        if subject.given:
            accuracy = self.shared(subject, "model", "predict", "--data", subject.tests).get("accuracy")
        else:
            accuracy = self.shared(subject, "model", "train", "--data", subject.train, "--test", subject.tests, "--epochs", amounts.epochs,
                                   output=".onnx", model=subject.spec or subject.model)["accuracy"]
        described = self.shared(subject, "neurons", "describe", "--data", subject.look, output=".out.json")
        found = {option: self.calibrated(subject, option) for option in self.options(subject)}
        return {"accuracy": accuracy, "neurons": described["neurons"], "named": described["named"], "thresholds": found}

    def options(self, subject):
        """Options of paths that a campaign is run with, besides the usual ones."""
        amounts = subject.amounts
        every = {"": "", **(VARIANTS if set("bcd") & set(subject.parts) else {})}
        if "e" in subject.parts:
            every.update({encoder: f"encoder={encoder}" for encoder in self.text_encoders if encoder != "hash"})
        if "f" in subject.parts:
            every.update({f"{k} layers": f"layers={k}" for k in amounts.layers})
        if "g" in subject.parts:
            every.update({f"{k} labels": f"labels={k}" for k in (2, 3)})
        return tuple(every.values())

    def guide(self, subject, option):
        return f"nsgen:describe={subject.place}/neurons.out.json,{subject.amounts.flow}" + (f",{option}" if option else "")

    def calibrated(self, subject, option, share=None):
        name = f"tau-{option or 'usual'}-{share or subject.amounts.share}".replace("=", "-").replace("%", "")
        return self.shared(subject, name, "calibrate", "--describe", f"{subject.place}/neurons.out.json", "--data", subject.train, "--guide",
                           self.guide(subject, option), "--share", share or subject.amounts.share, output=".out.json")

    def campaign(self, subject, name, guide, *budget):
        """What came of a campaign whose picks end with the first mutant that is kept, as in the paper's loop."""
        profile = ("--train", subject.train) if guide in COVERAGE else ()
        labels = ("--labels", "model") if subject.photos else ()
        said = self.step(subject, name, "fuzz", "--data", subject.tests, *labels, *profile, "--guide", guide, "--generator", "mutate", "--scheduler",
                         "decay", "--stop-at-kept", "--seeds", subject.amounts.seeds, "--energy", subject.amounts.energy, *budget, output="")
        return {key: said[key] for key in ("kept_faults", "outputs", "rft", "fre", "classes", "oi", "faults", "distinct_faults", "valid",
                                           "seconds", "covered", "coverable", "passes", "iterations")}

    def nsgen(self, subject, name, option, *budget, threshold_of=None):
        """With the threshold that was calibrated for these options of paths, or for those of `threshold_of`."""
        tau = self.calibrated(subject, option if threshold_of is None else threshold_of)["tau"]
        return {**self.campaign(subject, name, f"{self.guide(subject, option)},tau={tau!r}", *budget), "tau": tau}

    # Tables 3 and 4: as many picks for every guide.
    def guides(self, subject):
        budget = ("--iterations", subject.amounts.iterations)
        found = {guide: self.campaign(subject, f"guide-{guide}", guide, *budget) for guide in (*subject.amounts.guides, "random")}
        return {**found, "nsgen": self.nsgen(subject, "guide-nsgen", "", *budget)}

    # The same by the clock: paths cost many passes, so NSGen sees fewer mutants.
    def equal_time(self, subject):
        budget = ("--time", subject.amounts.time)
        found = {guide: self.campaign(subject, f"time-{guide}", guide, *budget) for guide in ("nlc", "random")}
        return {**found, "nsgen": self.nsgen(subject, "time-nsgen", "", *budget),
                "label alone": self.nsgen(subject, "time-label", VARIANTS["label alone"], *budget)}

    # Table 12: as many outputs.
    def equal_outputs(self, subject):
        amounts = subject.amounts
        budget = ("--outputs", amounts.outputs, "--iterations", 20 * amounts.outputs, "--reset-when-full")
        found = {guide: self.campaign(subject, f"outputs-{guide}", guide, *budget) for guide in (*amounts.guides, "random")}
        return {**found, "nsgen": self.nsgen(subject, "outputs-nsgen", "", *budget),
                "label alone": self.nsgen(subject, "outputs-label", VARIANTS["label alone"], *budget)}

    # Table 11, and how much of NSGen is that the label changed: with a threshold of its own, and with NSGen's.
    def variants(self, subject):
        budget = ("--iterations", subject.amounts.iterations)
        found = {"nsgen": self.nsgen(subject, "guide-nsgen", "", *budget)}
        for name, option in VARIANTS.items():
            step = f"variant-{option}".replace("=", "-")
            found[name] = self.nsgen(subject, step, option, *budget)
            found[nsgen_results.fixed(name)] = self.nsgen(subject, f"{step}-fixed", option, *budget, threshold_of="")
        return found

    # Table 5.
    def encoders(self, subject):
        budget = ("--iterations", subject.amounts.iterations)
        return {encoder: self.nsgen(subject, "guide-nsgen" if encoder == "hash" else f"encoder-{encoder}",
                                    "" if encoder == "hash" else f"encoder={encoder}", *budget) for encoder in self.text_encoders}

    # Figure 6.
    def layers(self, subject):
        budget = ("--iterations", subject.amounts.iterations)
        found = {k: self.nsgen(subject, f"layers-{k}", f"layers={k}", *budget) for k in subject.amounts.layers}
        return {**found, "all": self.nsgen(subject, "guide-nsgen", "", *budget)}

    # Table 8.
    def labels(self, subject):
        budget = ("--iterations", subject.amounts.iterations)
        return {1: self.nsgen(subject, "guide-nsgen", "", *budget),
                **{k: self.nsgen(subject, f"labels-{k}", f"labels={k}", *budget) for k in (2, 3)}}

    # Table 9, and figure 7: how similarity and failure go together.
    def thresholds(self, subject):
        return {share: self.calibrated(subject, "", share) for share in subject.amounts.shares}

    # Table 6: how many output neurons get the name of their class, by the number of pictures and by describer.
    def counts(self, subject):
        found = {}
        for describer in ("dissect", "formula"):
            for count in subject.amounts.counts:
                said = self.shared(subject, f"outputs-{describer}-{count}", "describe", "--data", subject.look,
                                   "--layers", subject.outputs_layer, "--count", count, "--describer", describer, output=".out.json")
                found[f"{describer}, {count}"] = said["layers"][0]["words"]
        return found

    # Figure 8: do guides find faults in different places, as the last layer sees them?
    def map(self, subject):
        picture = f"{subject.name}/map.svg"
        said = self.step(subject, "map", "features", "--data", subject.tests, "--tests", *(f"{subject.name}/guide-{guide}" for guide in subject.amounts.mapped),
                         "--most", 200, "--picture", picture, output=".csv", writes=(picture,))
        return {"groups": said["groups"], "picture": self.study.work / picture}

    # Table 7, on drawn scenes, whose sentences are known.
    def captioner(self, subject):
        neurons, epochs = subject.amounts.captioner
        return {f"{embedding}, {hidden}": self.study.step(f"captioner/{embedding}-{hidden}", "train-captioner", "--neurons", neurons, "--epochs", epochs, "--embedding",
                                                          embedding, "--hidden", hidden, "--seed", 1, output=".captioner") for embedding, hidden in LSTM}

    # Table 13: faults of one half of the tests mend the model; the other half and attacks on it say by how much.
    def repaired(self, subject):
        epochs, clean = subject.amounts.repair
        half = f"{subject.data}:test[{clean}:{2 * clean}]"
        models = {"original": subject.onnx}
        rate = ("--optimizer", "sgd:lr=0.001") if subject.given else ()
        for method in subject.amounts.repaired_with:
            exported = self.study.step(f"{subject.name}/{method}-tests", "export", f"{subject.name}/guide-{method}", "--distinct", "--to", "npz",
                                       output=".npz")["exported"]
            if exported < 2:
                continue
            self.step(subject, f"repaired-{method}", "repair", "--tests", f"{subject.name}/{method}-tests.npz", "--data", subject.train, "--clean",
                      half, "--held-out", 0, "--per-seed", 0, "--epochs", epochs, "--control", "none", *rate, output=".onnx")
            models[method] = f"{subject.name}/repaired-{method}.onnx"
        self.step(subject, "plain", "train", "--data", subject.train, "--test", half, "--epochs", epochs, *(rate or ("--optimizer", "sgd:lr=0.01")),
                  output=".onnx")
        models["as much training"] = f"{subject.name}/plain.onnx"
        return {name: self.withstood(subject, name, model, half) for name, model in models.items()}

    def withstood(self, subject, name, model, half):
        found = {"clean": self.step(subject, f"clean-{name}".replace(" ", "-"), "predict", "--data", half, model=model)["accuracy"]}
        eps = "2/255" if subject.data == "cifar10" else "25/255"
        for attack in ("pgd", "bim"):
            said = self.step(subject, f"{attack}-{name}".replace(" ", "-"), "attack", "--data", half, "--method", f"{attack}:steps=10", "--eps", eps,
                             output="", model=model)
            found[attack] = found["clean"] * (1 - sum(c["broken"] for c in said["classes"]) / max(said["tried"], 1))
        return found


def main():
    parser = common.arguments(__doc__.split("\n")[0], ("smoke", "small", "paper"))
    parser.set_defaults(jobs=1)  # nothing else shall take a campaign's time
    parser.add_argument("--resnet20", default=common.ROOT.parent / "shared/data/resnet20-cifar10.onnx",
                        help="a ResNet-20 of CIFAR-10 (default: ../shared/data/resnet20-cifar10.onnx); left out where there is none")
    parser.add_argument("--encoders", default="hash", help="of texts, for table 5: hash,glove,minilm (default: hash)")
    parser.add_argument("--imagenet", default="", help="a network of ImageNet, such as `galvani model get mobilenet-imagenet` writes")
    parser.add_argument("--photos", default="", help="a folder of photos for it; without the two this subject is left out")
    given = parser.parse_args()
    study, output = common.open_study("nsgen", given)
    resnet20 = str(given.resnet20) if common.pathlib.Path(given.resnet20).is_file() else ""
    imagenet, photos = (str(common.pathlib.Path(path).resolve()) if path else "" for path in (given.imagenet, given.photos))
    all_subjects = subjects(given.scale, resnet20, imagenet, photos)
    measurements = Measurements(study, given.encoders.split(","))
    missing = {}

    def tried(table, subject):
        try:
            return getattr(measurements, table)(subject)
        except common.Missing:
            missing.setdefault(table, []).append(subject.name)
            return None
    # A study that is stopped shall have something to say of every seed: first the tables that all of them have.
    tasks, prepared = [], set()
    order = ("guides", "equal_outputs", "variants", "equal_time", "encoders", *SINGLE)
    wanted = [(TABLES[letter], s) for s in all_subjects for letter in s.parts]
    for table, subject in sorted(wanted, key=lambda t: order.index(t[0])):
        if subject.place not in prepared:
            prepared.add(subject.place)
            tasks.append(("prepare", subject))
        tasks.append((table, subject))
    found = {table: [] for table in ("prepare", *TABLES.values())}
    for table, subject in tasks:
        result = tried(table, subject)
        if result is not None:
            found[table].append((subject, result))
    nsgen_results.write(study, output, given.scale, found, missing)
    print(f"{study.steps} steps, {study.repeated} of them from before, {study.seconds / 60:.1f} minutes of steps; results in {output}")
    return 0


if __name__ == "__main__":
    common.run(main)
