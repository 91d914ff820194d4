"""The program: its commands, and what a failure is told as.

Other folders add commands through the entry point group `onrecord.commands` (a callable each).
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.metadata import entry_points

import typer

from onrecord.projections.cli.command import app, fail
from onrecord.transcript.errors import OnRecordError

MODULES = (
    "importing",
    "exporting",
    "showing",
    "searching",
    "following",
    "replaying",
    "explaining",
    "delivering",
    "auditing",
    "upkeep",
)
"""Modules that hold commands, in the order of the help."""

for _module in MODULES:
    import_module(f"onrecord.projections.cli.{_module}")


def _add_commands() -> None:
    """Add the commands of other folders, which nothing here may import."""
    for entry in entry_points(group="onrecord.commands"):
        app.command(entry.name)(entry.load())


_UsageError: type[Exception] = typer.BadParameter.__mro__[2]  # typer names its root nowhere else


def main() -> None:
    """Run the command: errors in one line on stderr, exit 2."""
    _add_commands()
    try:
        try:
            code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
        finally:
            sys.stdout.flush()  # here, where a failure is still told in one line
    except OnRecordError as error:
        fail(str(error))
    except _UsageError as error:
        told = getattr(error, "format_message", error.__str__)()
        of_option = getattr(error, "option_name", None) is not None
        named = "; a name that begins with - stands after --" if of_option else ""
        fail(f"{told.rstrip('.')}; `onrecord --help` says how{named}".replace("\n", " "))
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()  # the reader went away: nothing is left to say, and to nobody
        sys.exit(2)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left is flushed at the exit
        fail(f"can't write the output: {error.strerror}")
    sys.exit(code if isinstance(code, int) else 0)
