"""What can be wrong with a source: the codes of the faults that an import tells.

`onrecord.projections.codes` says what each means, and what to do about it.
"""

from __future__ import annotations

from typing import Final

DUPLICATE: Final = "duplicate-in-source"
BROKEN: Final = "alternation-broken-in-source"
SYNTHETIC: Final = "synthetic-in-source"
HIDDEN: Final = "hidden-in-source"
LOST: Final = "content-unrecoverable"
UNREADABLE: Final = "unreadable-in-source"
MALFORMED: Final = "malformed-in-source"
UNKNOWN: Final = "unknown-in-source"
TORN: Final = "torn-tail"
GAP: Final = "gap"
CONFLICTING: Final = "conflicting-record"
