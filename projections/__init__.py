"""What follows from the log: rows, the promise, deliveries, findings, and a provider's request."""

from onrecord.projections.conversation import Conversation, project
from onrecord.projections.deliveries import DeliveryHistory, deliveries
from onrecord.projections.findings import Finding, findings
from onrecord.projections.promise import DeliveredNotProjected, check
from onrecord.projections.rows import Row
from onrecord.projections.transcript import Transcript, build

__all__ = [
    "Conversation",
    "DeliveredNotProjected",
    "DeliveryHistory",
    "Finding",
    "Row",
    "Transcript",
    "build",
    "check",
    "deliveries",
    "findings",
    "project",
]
