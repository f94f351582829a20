"""What every room stands on."""

__version__ = "0.2.0"
