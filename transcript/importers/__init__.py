"""Foreign transcripts and delivery records → events."""

from onrecord.transcript.importers.running import Imported, import_source
from onrecord.transcript.importers.source import Entry, Source

__all__ = ["Entry", "Imported", "Source", "import_source"]
