"""The version of this package, which is that of the engine."""

__version__ = "0.1.0"
