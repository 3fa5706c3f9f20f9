"""What can go wrong: one sentence each, the same as on the command line."""


class Error(Exception):
    """Everything that Galvani has to say no to."""


class UsageError(Error, ValueError):
    """An option is wrong, or does not go with another."""


class InputError(Error, ValueError):
    """A file or an array is wrong: damaged, of another shape or type."""


class MachineError(Error, OSError):
    """The machine said no: a full disk, a folder that cannot be written, memory that is not there."""


class InternalError(Error, RuntimeError):
    """A mistake of ours."""
