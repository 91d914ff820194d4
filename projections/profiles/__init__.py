"""Rows in the form of a provider's request, which that provider's published rules allow."""

from onrecord.projections.profiles.reading import texts_of
from onrecord.projections.profiles.rendering import PROFILES, render
from onrecord.projections.profiles.rules import violations

__all__ = ["PROFILES", "render", "texts_of", "violations"]
