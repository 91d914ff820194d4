"""What a person sees on a terminal, and the JSON shapes that programs read."""

from onrecord.projections.pages.terminal import console, plain

__all__ = ["console", "plain"]
