"""What each code of a finding means, and what to do about it, for whoever has never seen one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple


class Meaning(NamedTuple):
    """`level`: `error` where the model or the user lacks something that the other one has."""

    level: Literal["error", "warning", "note"]
    short: str
    advice: str


MEANINGS: Mapping[str, Meaning] = {
    "delivered-not-in-source": Meaning(
        "error",
        "A reply was delivered and the imported transcript lacks it.",
        "The user has read it, and the model that goes on from that transcript knows nothing of it: "
        "the lost response. `onrecord show SESSION` gives the transcript with it.",
    ),
    "duplicate-in-source": Meaning(
        "warning",
        "The imported transcript holds a message twice.",
        "The model is told the same twice, or a provider refuses the request. The first one counts.",
    ),
    "alternation-broken-in-source": Meaning(
        "warning",
        "The roles of the imported transcript don't follow one another as providers want them.",
        "A provider may refuse such a request. `onrecord show SESSION --as PROFILE` gives one that "
        "obeys its rules.",
    ),
    "produced-not-delivered": Meaning(
        "error",
        "The model's answer never went out, and its turn is over.",
        "The transcript says that the assistant answered, and the user saw nothing. Send it, or tell "
        "the model with `annotate`.",
    ),
    "partly-delivered": Meaning(
        "warning",
        "The user got a beginning of a text that is known whole.",
        "The transcript holds what was seen. Send the rest, or let the model say it again.",
    ),
    "delivery-in-doubt": Meaning(
        "warning",
        "Nobody knows whether the user got a text.",
        "It was attempted, and no answer of the platform came. Look at the platform by the ids that "
        "`onrecord deliveries SESSION` gives; sending it again may show it twice.",
    ),
    "delivered-differs": Meaning(
        "warning",
        "The user read another text than the model produced.",
        "The transcript holds what was seen. Something between the model and the platform changed it.",
    ),
    "delivered-twice": Meaning(
        "warning",
        "The user got the same text more than once.",
        "A send was repeated although the first one had arrived: after a timeout, or by two processes.",
    ),
    "unanswered-tool-call": Meaning(
        "warning",
        "A turn ended with a call of a tool that has no result.",
        "The transcript answers it with a synthetic result, since providers refuse a call without one.",
    ),
    "orphan-tool-result": Meaning(
        "warning",
        "A tool's result answers no call of the session.",
        "It makes no row. The call was never recorded, or the result belongs to another session.",
    ),
    "turn-unclosed": Meaning(
        "note",
        "A turn was never finalised although a later one began.",
        "Its process died or forgot to say so. `onrecord.Recovery` closes such turns at a start.",
    ),
    "conflicting-record": Meaning(
        "warning",
        "A record contradicts an earlier one of the same id.",
        "The first one counts for the transcript; two writers disagree about what happened.",
    ),
    "record-set-aside": Meaning(
        "error",
        "A record can't be projected and was left out.",
        "`onrecord verify` says what is damaged; `onrecord rebuild` takes in what can be read again.",
    ),
    "content-unrecoverable": Meaning(
        "error",
        "The source of an import tells that something was said, and not what.",
        "A log line that kept a length alone, or a payload that is gone.",
    ),
    "synthetic-in-source": Meaning(
        "warning",
        "The source holds a message that nobody wrote, in somebody's name.",
        "A prompt that a program made up stands there as the user's words.",
    ),
    "unreadable-in-source": Meaning(
        "error",
        "A record of an import's source can't be read.",
        "It was left out. The place says where it stands in the source.",
    ),
    "malformed-in-source": Meaning(
        "warning",
        "A record of an import's source can be read, and a part of it isn't as it should be.",
        "What could be read of it was taken. The detail says which part.",
    ),
    "unknown-in-source": Meaning(
        "note",
        "The source of an import holds a record of a type that isn't known.",
        "It makes no row. A newer version of onrecord may know it.",
    ),
    "hidden-in-source": Meaning(
        "error",
        "The source of an import holds records that its own program shows to nobody.",
        "A record names the one before it, and these are named by none that leads to the newest: the "
        "program has forgotten them, and so has its model. `onrecord show SESSION` has them.",
    ),
    "torn-tail": Meaning(
        "warning",
        "The last record of an import's source is cut.",
        "The program was killed, or still wrote. Import again once it has gone on.",
    ),
    "gap": Meaning(
        "warning",
        "Records are missing from an import's source.",
        "Numbers or times show that something stood between two records.",
    ),
}
"""By code, in the order in which codes are listed."""

CODES = tuple(MEANINGS)

UNKNOWN = Meaning("note", "Found by an import.", "The detail says what.")
"""For a code that an import of another version gave."""
