"""A transcript for people: Markdown, and HTML in one file. Message text is inert in both."""

from onrecord.projections.documents.document import Document, document
from onrecord.projections.documents.html import html
from onrecord.projections.documents.markdown import markdown

__all__ = ["Document", "document", "html", "markdown"]
