"""eventsourcing's mapper, store, notification log and subscriptions work on our events and our log."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from eventsourcing.application import LocalNotificationLog
from eventsourcing.cipher import AESCipher
from eventsourcing.compressor import ZlibCompressor
from eventsourcing.persistence import (
    EventStore,
    IntegrityError,
    JSONTranscoder,
    MapperDeserialisationError,
    StoredEvent,
)
from eventsourcing.utils import Environment

from onrecord.transcript.events import SessionEnded, UserMessageReceived
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.mapper import LogRecorder, Said, TranscriptMapper
from onrecord.transcript.storage import Factory


def said(session: str, version: int, message: str) -> Said:
    return Said(session, version, UserMessageReceived(message=message, text=f"text of {message}"))


def _told(event: Any) -> tuple[str, int, str]:
    return event.originator_id, event.originator_version, event.event.message


def test_mapper_keeps_events_compressed_and_encrypted() -> None:
    key = AESCipher.create_key(16)
    cipher = AESCipher(Environment(env={"CIPHER_KEY": key}))
    mapper = TranscriptMapper(JSONTranscoder(), ZlibCompressor(), cipher)
    event = SessionEnded(reason="done", extra={"by": "user"})

    stored = mapper.to_stored_event(Said("s", 4, event))

    assert (stored.originator_id, stored.originator_version, stored.topic) == (
        "s",
        4,
        "SessionEnded",
    )
    assert b"done" not in stored.state
    assert mapper.to_domain_event(stored) == Said("s", 4, event)
    with pytest.raises(MapperDeserialisationError):
        TranscriptMapper(JSONTranscoder()).to_domain_event(stored)


def test_our_events_in_a_recorder_of_theirs(tmp_path: Path) -> None:
    with Factory({"ONRECORD_DB": f"sqlite:///{tmp_path}/log.db"}) as factory:
        store = EventStore(TranscriptMapper(JSONTranscoder()), factory.application_recorder())
        store.put([said("s", 1, "a"), said("s", 2, "b")])

        assert [_told(event) for event in store.get("s")] == [("s", 1, "a"), ("s", 2, "b")]


def test_the_log_as_their_recorder() -> None:
    mapper = TranscriptMapper(JSONTranscoder())
    with TranscriptLog.open("sqlite://") as log:
        recorder = LogRecorder(log)
        store = EventStore(mapper, recorder)
        store.put([said("s", 1, "a"), said("s", 2, "b")])
        recorder.insert_events([mapper.to_stored_event(said("t", 0, "c"))])

        assert [_told(event) for event in store.get("s", gt=1)] == [("s", 2, "b")]
        assert [_told(event) for event in store.get("s", desc=True, limit=1)] == [("s", 2, "b")]
        assert [record.version for record in log.read("s")] == [1, 2]
        assert recorder.max_notification_id() == 3
        section = LocalNotificationLog(recorder, section_size=10)["1,10"]
        assert [item.originator_id for item in section.items] == ["s", "s", "t"]
        with pytest.raises(IntegrityError):
            store.put([said("s", 2, "other")])
        with recorder.subscribe(gt=1) as subscription:
            assert [next(subscription).id for _ in range(2)] == [2, 3]


def test_ids_of_both_kinds_come_back_as_they_were(tmp_path: Path) -> None:
    id = uuid4()
    with Factory({"ONRECORD_DB": f"sqlite:///{tmp_path}/log.db"}) as factory:
        recorder = factory.application_recorder()
        recorder.insert_events([StoredEvent(id, 1, "t", b"1"), StoredEvent(id.hex, 1, "t", b"2")])

        assert [n.originator_id for n in recorder.select_notifications(1, 10)] == [id, id.hex]
        assert recorder.select_events(id)[0].state == b"1"
        assert recorder.select_events(id.hex)[0].state == b"2"


def test_an_application_and_a_log_share_a_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/log.db"
    with Factory({"ONRECORD_DB": url}) as factory, TranscriptLog.open(url) as log:
        factory.application_recorder().insert_events([StoredEvent("a", 1, "t", b"1")])
        log.append("s", UserMessageReceived(message="m", text="x"))

        assert len(factory.application_recorder().select_notifications(1, 10)) == 1
        assert log.version("s") == 1
