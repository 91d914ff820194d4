"""The record format is fixed: these vectors hold for every log that was ever written."""

from __future__ import annotations

from hashlib import sha256
from uuid import UUID

from onrecord.transcript import codec, evidence
from onrecord.transcript.events import DeliveryAttempted, Source, ToolResultReceived
from onrecord.transcript.events import UserMessageReceived as Message

KEY = bytes(range(16))
ID = UUID("f6f75227-a8bf-513e-b21a-c3fac67a7442")


def test_commitment_leaf_and_chain() -> None:
    commitment = evidence.commit(b"\x01" * 16, b"\x82\xa7message\xa1m\xa4text\xa2hi")
    leaf = evidence.leaf(
        KEY, 1, ID.bytes, "UserMessageReceived", 1, 1_780_000_000_123_456, 7, commitment
    )
    first = evidence.link(evidence.START, leaf)

    assert commitment.hex() == "bd7ec9e469b34d67a6296accd6187d614ed34de271b3a759d07a26aa1fce0577"
    assert leaf.hex() == "16d7a32176a17a05113cc44b250a1cb0447c840897f730219edd16bec504d19a"
    assert first.hex() == "049616d1f5a1c08d2c9eb2a6fdef0834ec3bbc3ffca214a42e38004576c78689"
    assert (
        evidence.link(first, leaf).hex()
        == "42a20ac05df9dd964b217927b4ee706ebed65b982ef65aeaf230d30530395a58"
    )


def test_leaf_is_what_the_format_says() -> None:
    def prefixed(value: bytes | int) -> bytes:
        data = value.to_bytes(8, "big", signed=True) if isinstance(value, int) else value
        return len(data).to_bytes(4, "big") + data

    fields = (KEY, 3, ID.bytes, b"Typ\xc3\xa9", 2, -5, 9, b"c" * 32)
    spelled = sha256(b"\x00onrecord/1" + b"".join(prefixed(f) for f in fields)).digest()

    assert evidence.leaf(KEY, 3, ID.bytes, "Typé", 2, -5, 9, b"c" * 32) == spelled


def test_payload() -> None:
    event = Message(
        message="m", text="hi", source=Source(platform="p", message="1"), extra={"b": 1}
    )

    assert codec.encode(event).hex() == (
        "84a16201a76d657373616765a16da6736f7572636582a8706c6174666f726da170"
        "a76d657373616765a131a474657874a26869"
    )


def test_ids() -> None:
    plain = Message(message="m", text="hi")
    sourced = Message(message="m", text="hi", source=Source(platform="p", message="1"))
    result = ToolResultReceived(turn="t", tool_call="c")
    part = DeliveryAttempted(delivery="d", text="x", offset=3, attempt=2)

    assert [
        str(codec.derive_id("s", plain)),
        str(codec.derive_id("s", sourced)),
        str(codec.derive_id("s", result, "t+")),
        str(codec.derive_id("s", part)),
    ] == [
        "53712f46-c24e-50a3-9f13-40e75ad1060b",
        "6c777144-5523-5678-8e54-61dc3545737f",
        "6bcc7d75-29f6-514c-ab0e-da692bb040ea",
        "f1336c57-694a-5842-aeb7-35687e152f55",
    ]
    assert codec.derive_id("other", sourced) == codec.derive_id("s", sourced)
