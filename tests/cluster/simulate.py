"""How many candidates a second so many ranks of one thread make, from what a campaign costs on one.

A batch is a row of calls, each cut into tasks. A rank does the tasks from n·r/R up to n·(r+1)/R, all wait for the one with most, then everybody's results go to
everybody. What is not cut (picking, deciding, storing) every rank does alike, or waits for the first to do.
"""
import math
from dataclasses import dataclass


@dataclass
class Run:
    """What one campaign reported."""
    mutants: int
    seconds: float  # of work
    cut: list  # (tasks, calls, seconds)
    bytes: int  # sent
    beside: float  # seconds of a processor, in which the first rank stores while all go on


@dataclass
class Network:
    """Between machines: what one exchange takes before a byte goes, for each doubling of the ranks, and bytes a second."""
    latency: float = 20e-6
    bandwidth: float = 1.25e9

    @classmethod
    def inside_a_machine(cls):
        return cls(2e-6, 4e9)

    def exchange(self, ranks, size):
        return 0 if ranks == 1 else self.latency * math.ceil(math.log2(ranks)) + size * (ranks - 1) / ranks / self.bandwidth


@dataclass
class Campaign:
    """Seconds of one candidate on one rank of one thread."""
    decider: float  # what is not cut
    calls: dict  # of cut work: tasks → (calls a candidate, seconds a candidate)
    sent: float  # bytes a candidate
    beside: float  # of the first rank's processor, for storing

    @property
    def cut(self):
        return sum(seconds for _, seconds in self.calls.values())

    @property
    def total(self):
        return self.decider + self.cut

    @classmethod
    def between(cls, start, whole, sent):
        """Of the candidates that one run has more than another, so that what is done once does not count."""
        more = whole.mutants - start.mutants
        before = {tasks: (calls, seconds) for tasks, calls, seconds in start.cut}
        calls = {}
        for tasks, count, seconds in whole.cut:
            count_before, seconds_before = before.get(tasks, (0, 0))
            if tasks > 0 and count > count_before:
                calls[tasks] = ((count - count_before) / more, max(0.0, seconds - seconds_before) / more)
        cut = sum(seconds for _, seconds in calls.values())
        return cls(max(0.0, (whole.seconds - start.seconds) / more - cut), calls, sent, (whole.beside - start.beside) / more)


def predicted(campaign, ranks, network, cores=None):
    """Candidates a second. `cores` fewer than ranks: they share them, and what is not cut is done by each. Without a core that is idle, the first rank stores in
    time of its own, and the others wait for it."""
    crowd = max(1.0, ranks / cores) if cores else 1.0
    seconds = campaign.decider * crowd
    if not cores or ranks >= cores:
        seconds += campaign.beside
    exchanges = sum(calls for calls, _ in campaign.calls.values())
    for tasks, (_, cut) in campaign.calls.items():
        seconds += cut * math.ceil(tasks / ranks) / tasks * crowd
    seconds += exchanges * network.exchange(ranks, campaign.sent / exchanges if exchanges else 0) * crowd
    return 1 / seconds


def efficient_ranks(campaign, network, share=0.5, most=1 << 16):
    """The largest number of ranks each of which still does this share of what one alone does."""
    alone = predicted(campaign, 1, network)
    good = [ranks for ranks in (2**(i / 4) for i in range(4 * int(math.log2(most)))) if predicted(campaign, int(ranks), network) >= share * alone * int(ranks)]
    return int(max(good, default=1))
