"""Galvani tests deep neural networks the way a fuzzer tests programs.

    import galvani
    network = galvani.Network.load("lenet5.onnx")            # or Network.from_torch(module, example)
    network.predict(images).predicted                        # NumPy in, NumPy out
    galvani.cover(network, data=(images, labels), criteria="nc,tknc")
    result = galvani.fuzz(network, data="mnist:test", time="60s", output="run1")
    with galvani.Campaign("run1") as run:
        run.fault_columns()["change"]

Every verb of the command line is a function with the same options and the same result; help(galvani.fuzz) lists them.
Errors are exceptions with the same sentences: galvani.Error and those derived from it. Ctrl-C ends a call with
KeyboardInterrupt, and a campaign can be gone on with. docs/python.md has all of it.
"""
from galvani._galvani import __version__, log_level, progress, threads
from galvani.calls import events
from galvani.campaign import Campaign
from galvani.components import Guide, Judged, Seen, Selector, add_generator, add_guide, add_selector
from galvani.data import Data
from galvani.errors import Error, InputError, InternalError, MachineError, UsageError
from galvani.network import Network, Outputs, Predictions, Tap
from galvani.pictures import Picture, sheet
from galvani import verbs
from galvani.verbs import *  # noqa: F403 (one function for every verb)

__all__ = [
    "Campaign", "Data", "Error", "Guide", "InputError", "InternalError", "Judged", "MachineError", "Network", "Outputs",
    "Picture", "Predictions", "Seen", "Selector", "Tap", "UsageError", "add_generator", "add_guide", "add_selector",
    "__version__", "events", "log_level", "progress", "sheet", "threads",
]
__all__ += verbs.__all__
