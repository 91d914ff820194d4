"""The command `onrecord`. Thin: each command reads the log, builds, and prints."""

from onrecord.projections.cli.command import app
from onrecord.projections.cli.run import main

__all__ = ["app", "main"]
