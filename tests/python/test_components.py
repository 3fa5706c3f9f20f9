"""Components written in Python."""
import time

import numpy as np

import galvani
from common import TEST, TRAIN, Case, told

FUZZ = dict(data=TEST, seeds=100, energy=32, batch=16)


class Above:
    """neurons that were above a threshold once"""

    needs_traces = True

    def __init__(self, threshold):
        self.threshold, self.seen = threshold, None

    def decide(self, batch):
        active = batch.traces > self.threshold
        self.seen = np.zeros(active.shape[1], bool) if self.seen is None else self.seen
        gains = np.zeros(len(active))
        for row in np.flatnonzero((active & ~self.seen).any(1)):
            gains[row] = (active[row] & ~self.seen).sum()
            self.seen |= active[row]
        return gains


class Doubt:
    """inputs whose two best classes are close"""

    def score(self, batch):
        best = np.sort(batch.probabilities, axis=1)
        return 1 - (best[:, -1] - best[:, -2])


class Strange:
    """inputs far from the training data's mean"""

    features = ["penultimate"]

    def __init__(self):
        self.sum, self.n = 0, 0

    def train(self, batch):
        self.sum, self.n = self.sum + batch.features[0].sum(0, dtype=float), self.n + len(batch.labels)

    def score(self, batch):
        return np.linalg.norm(batch.features[0] - self.sum / self.n, axis=1)


def brighter(most):
    def generate(parents, seeds, draws):
        by = (draws % most + 1).astype(np.int16).reshape(-1, 1, 1, 1)
        return np.clip(parents.astype(np.int16) + by, 0, 255).astype(np.uint8)

    return generate


class Components(Case):
    def setUp(self):
        super().setUp()
        galvani.add_guide("above", Above, options={"threshold": 0.5})
        galvani.add_selector("doubt", Doubt)
        galvani.add_selector("strange", Strange)
        galvani.add_generator("brighter", brighter, options={"most": 40})

    def test_a_guide_in_a_campaign(self):
        result = galvani.fuzz("eight.onnx", guide="above:threshold=1.5", iterations=64, output="run", **FUZZ)
        self.assertGreater(result["outputs"], 0)
        self.assertEqual(galvani.Campaign("run").settings["guide"], "above:threshold=1.5")
        # Any number of threads, stopped and gone on with: the same campaign.
        galvani.fuzz("eight.onnx", guide="above:threshold=1.5", iterations=32, output="cut", threads=1, **FUZZ)
        again = galvani.fuzz("eight.onnx", guide="above:threshold=1.5", iterations=64, output="cut", **FUZZ)
        self.assertEqual({**told(again), "folder": ""}, {**told(result), "folder": ""})
        kept = galvani.Campaign("run").input_columns()
        self.assertEqual(kept["gain"].sum() + galvani.Campaign("run").seed_columns()["gain"].sum(), result["covered"])

    def test_the_cost_of_python(self):
        """The same guide in two languages: the same campaign, and what each costs, in time of the processor."""
        guides = {"C++": "nc:threshold=1.5,scale=false", "Python": "above:threshold=1.5"}
        spent, found = {}, {}
        for language in (*guides, *guides):  # the first pair warms up
            begun = time.process_time()
            folder = f"{language}-{len(spent)}-{language in found}"
            result = galvani.fuzz("eight.onnx", guide=guides[language], iterations=400, output=folder, **FUZZ)
            spent[language] = (time.process_time() - begun) / result["valid"]
            found[language] = [result[name] for name in ("iterations", "valid", "outputs", "faults", "covered")]
        self.assertEqual(found["C++"], found["Python"])
        print("\nprocessor time a valid mutant:", {name: f"{value * 1e6:.0f} us" for name, value in spent.items()}, flush=True)
        self.assertLess(spent["Python"], 2 * spent["C++"])

    def test_a_selector(self):
        # What pcs, the difference of the two best, says, too.
        ours = galvani.select("eight.onnx", data=TEST, by="doubt", top=20)["selectors"][0]
        theirs = galvani.select("eight.onnx", data=TEST, by="pcs", top=20)["selectors"][0]
        self.assertEqual([p["index"] for p in ours["picks"]], [p["index"] for p in theirs["picks"]])
        found = galvani.select("eight.onnx", data=TEST, train=TRAIN, by="strange,random", evaluate=True)
        self.assertEqual(len(found["selectors"]), 2)

    def test_a_generator(self):
        result = galvani.fuzz("eight.onnx", generator="brighter:most=90", guide="random", iterations=32, output="run", **FUZZ)
        self.assertGreater(result["valid"], 0)
        with galvani.Campaign("run") as run:
            kept = run.inputs()[0]
            change = run.input_image(kept["id"]).astype(int) - run.input_image(kept["parent"])
            self.assertTrue(((0 <= change) & (change <= 90)).all() and change.any())
            self.assertRegex(kept["rule"], r"^brighter:draw=\d+$")
        # Its steps can be made again.
        self.assertEqual(galvani.check("run")["damage"], [])

    def test_mistakes_are_told(self):
        class Short:
            def decide(self, batch):
                return [1.0]

        class Broken:
            def decide(self, batch):
                return 1 / 0

        galvani.add_guide("short", Short)
        galvani.add_guide("broken", Broken)
        galvani.add_generator("small", lambda: lambda parents, seeds, draws: parents[:, :, :2])
        work = dict(iterations=16, **FUZZ)
        self.refuses(galvani.UsageError, "rows", lambda: galvani.fuzz("eight.onnx", guide="short", output="a", **work))
        with self.assertRaises(ZeroDivisionError):
            galvani.fuzz("eight.onnx", guide="broken", output="b", **work)
        self.refuses(galvani.UsageError, "shape", lambda: galvani.fuzz("eight.onnx", generator="small", guide="random", output="c", **work))
        self.refuses(galvani.UsageError, "of Galvani", lambda: galvani.add_guide("nc", Short))
        self.refuses(galvani.UsageError, "no name", lambda: galvani.add_guide("Über", Short))
        self.refuses(galvani.UsageError, "default", lambda: galvani.add_guide("odd", Short, options={"x": []}))
        self.refuses(galvani.UsageError, "threshold", lambda: galvani.fuzz("eight.onnx", guide="above:thresold=2", output="d", **work))

    def test_a_guide_may_run_the_network(self):
        network = galvani.Network.load("eight.onnx")

        class Steep:
            """inputs whose verdict hangs on few levels"""

            def decide(self, batch):
                slopes = network.run(batch.images, gradient_of="predicted").input_gradient
                return np.maximum(0, np.abs(slopes).sum((1, 2, 3)) - 20)

        galvani.add_guide("steep", Steep)
        result = galvani.fuzz("eight.onnx", guide="steep", iterations=16, output="run", **FUZZ)
        self.assertEqual(result["iterations"], 16)
