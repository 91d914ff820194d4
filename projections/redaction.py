"""What was sent, for somebody who may not read it: texts and names as digests under a key.

A plain digest of a short text is as good as the text: whoever has a guess can try it. So it is HMAC-SHA256
under a key: equal texts have equal digests, and only who has the key can tell that a text is one.
"""

from __future__ import annotations

import hmac

import msgspec
from msgspec.structs import replace

from onrecord.projections.delivered import Sent
from onrecord.transcript.events import Target

KEY_BYTES = 32
"""What a key has that is made here."""
LEAST_KEY_BYTES = 16
TEXT_DIGITS, NAME_DIGITS = 32, 16
"""Hexadecimal digits of a digest that are kept: 128 bits of a text's, 64 of a name's."""
EVIDENCE = frozenset(("answer", "lookup", "receipt", "source"))
"""Words of the vocabulary: what else stands there is somebody's text."""


class Redaction(msgspec.Struct, frozen=True):
    """Takes texts out of what was sent; with `names` also who and where, and all ids."""

    key: bytes
    names: bool = False

    def text(self, text: str) -> str:
        """Return what stands for a text: its length in code points, and its digest."""
        if not text:
            return ""
        return f"[{len(text)} characters, {self._digest('text', text)[:TEXT_DIGITS]}]"

    def name(self, kind: str, name: str) -> str:
        """Return what stands for a name of a kind; names of two kinds can't be compared."""
        if not name or not self.names:
            return name
        return f"{kind}-{self._digest(kind, name)[:NAME_DIGITS]}"

    def _digest(self, kind: str, text: str) -> str:
        message = kind.encode() + b"\0" + text.encode("utf-8", "surrogatepass")
        return hmac.digest(self.key, message, "sha256").hex()

    def __call__(self, sent: Sent) -> Sent:
        """Return what was sent without what nobody is to read."""
        name = self.name
        return replace(
            sent,
            session=name("session", sent.session),
            user=name("user", sent.user),
            senders=[name("user", sender) for sender in sent.senders],
            delivery=name("delivery", sent.delivery),
            turn=name("turn", sent.turn),
            message=name("message", sent.message),
            platform_messages=[name("platform", one) for one in sent.platform_messages],
            target=sent.target and self._target(sent.target),
            text=self.text(sent.text),
            attempts=[replace(one, text=self.text(one.text)) for one in sent.attempts],
            failures=[
                replace(one, reason=self.text(one.reason), evidence=self._evidence(one.evidence))
                for one in sent.failures
            ],
            evidence=[self._evidence(one) or "" for one in sent.evidence],
        )

    def _evidence(self, evidence: str | None) -> str | None:
        return evidence if not evidence or evidence in EVIDENCE else self.text(evidence)

    def _target(self, target: Target) -> Target:
        return Target(
            platform=target.platform,
            chat=self.name("chat", target.chat),
            account=self.name("account", target.account),
            thread=target.thread and self.name("thread", target.thread),
        )
