"""Run the command with `python -m`."""

from onrecord.projections.cli import main

main()
