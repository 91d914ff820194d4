"""One commit for the appends of many: each gets its own answer, the storage's errors reach them all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onrecord.transcript import failpoints
from onrecord.transcript.append import DRAFTS_AT_ONCE, Append, States, Transaction, prepared
from onrecord.transcript.errors import AppendInDoubt, OnRecordError, StorageError
from onrecord.transcript.joining import Group, join
from onrecord.transcript.storage import journal
from onrecord.transcript.storage.database import CommitUnclear, Database


class Batches:
    """Commits appends of any sessions in one transaction. Only one thread at a time may."""

    def __init__(self, database: Database, text_limit: int) -> None:
        self._database = database
        self._text_limit = text_limit
        self._states = States()
        self._doubtful: set[str] = set()

    def forget(self) -> None:
        """Forget what sessions hold: it is read again when it is needed."""
        self._states = States()

    def commit(self, appends: Sequence[Append]) -> None:
        """Give each append its outcome or its error."""
        try:
            groups = [group for group in join(appends) for group in self._prepared(group)]
            if groups:
                self._commit([append for group in groups for append in group.appends], groups)
        except BaseException as error:
            # Interrupted, or a fault of ours: nobody may wait for an answer that doesn't come.
            for append in appends:
                self._states.forget(append.session)
                if append.outcome is None and append.error is None:
                    append.error = _in_doubt(append, f"the writing was broken off ({error!r})")
            raise
        finally:
            for append in appends:
                append.done = True

    def _prepared(self, group: Group) -> list[Group]:
        """Return the group made storable; or each append of it by itself, if it can't be as a whole."""
        if group.drafts is None:
            try:
                group.drafts = [
                    prepared(group.first.session, event, self._text_limit)
                    for event in group.events()
                ]
            except OnRecordError as error:
                if len(group.appends) == 1:
                    group.first.error = error
                    return []
                return [one for append in group.appends for one in self._prepared(Group(append))]
        return [group]

    def _commit(self, appends: list[Append], groups: list[Group]) -> None:
        sessions = tuple({append.session: None for append in appends})
        doing = _doing(sessions)
        try:
            self._transact(appends, groups, sessions, doing)
        except CommitUnclear as unclear:
            self._forget(sessions)
            self._settle(sessions, appends, unclear, doing)
        except OnRecordError as error:
            self._forget(sessions)
            self._failed(appends, error)
        if self._doubtful:
            self._doubtful.difference_update(a.session for a in appends if a.error is None)

    def _transact(
        self, appends: list[Append], groups: list[Group], sessions: Sequence[str], doing: str
    ) -> None:
        """Write in one transaction; again where another came in between, while there is time."""
        durable = any(append.durable for append in appends)
        tried = False

        def run(connection: Any) -> None:
            nonlocal tried
            if tried:
                self._forget(sessions)
                for append in appends:
                    append.outcome = append.error = None
            tried = True
            self._write(connection, groups, durable=durable)

        self._database.repeat(
            run, durable=durable, doing=doing, sessions=sessions, events=_count(groups),
            once=any(not isinstance(group.drafts, list) for group in groups),
        )  # fmt: skip

    def _write(self, connection: Any, groups: list[Group], *, durable: bool) -> None:
        given = [(group.first.session, group.drafts or ()) for group in groups]
        transaction = Transaction(connection, self._states, given)
        for group in groups:
            self._append(transaction, group)
        transaction.write()
        if durable and not transaction.wrote:
            # What is there already may have been committed without a sync.
            self._database.flush(connection)
        failpoints.hit_commit(
            r for g in groups for a in g.appends if a.outcome for r in a.outcome.records
        )

    def _append(self, transaction: Transaction, group: Group) -> None:
        first = group.first
        assert group.drafts is not None
        try:
            outcome = transaction.append(
                first.session, group.drafts, first.expected_version, first.lease
            )
        except OnRecordError as error:
            if len(group.appends) > 1:
                for append in group.appends:
                    for alone in self._prepared(Group(append)):
                        self._append(transaction, alone)
            elif not isinstance(group.drafts, list):
                raise  # one that streams: it has written already
            elif isinstance(error, StorageError):
                self._failed([first], error)  # what its session holds can't be read
            else:
                first.error = error
            return
        for append in group.appends:
            append.outcome = outcome

    def _forget(self, sessions: Sequence[str]) -> None:
        for session in sessions:
            self._states.forget(session)

    def _settle(
        self, sessions: Sequence[str], appends: list[Append], unclear: CommitUnclear, doing: str
    ) -> None:
        """Find out whether a commit that failed happened; what was refused in it stays so if it did."""
        ids = {r.id for a in appends if a.outcome is not None for r in a.outcome.records}

        def are_there(connection: Any) -> bool:
            return len(journal.existing(connection, list(ids))) == len(ids)

        try:
            found = self._database.settle(unclear, sessions, are_there, doing)
        except StorageError as error:
            self._doubtful.update(sessions)
            why = f"the commit failed ({unclear}) and the storage can't be asked ({error})"
            for append in appends:
                append.error = _in_doubt(append, why)
                append.error.__cause__ = unclear.cause
                append.outcome = None
            return
        if not found:
            failed = self._database.translate(unclear.cause, doing)
            failed.__cause__ = unclear.cause
            self._failed(appends, failed)

    def _failed(self, appends: list[Append], error: Exception) -> None:
        """Give each caller an error of its own: the transaction didn't happen.

        A session whose earlier append is in doubt stays in doubt: this append may be the earlier one,
        tried again, and what failed now didn't take that one back.
        """
        for append in appends:
            if append.session in self._doubtful and isinstance(error, StorageError):
                why = f"an earlier append is in doubt, and the storage fails ({error})"
                append.error = _in_doubt(append, why)
                append.error.__cause__ = error
            elif len(appends) == 1:
                append.error = error
            else:
                facts = error.facts if isinstance(error, OnRecordError) else {}
                append.error = type(error)(str(error), **facts)
                append.error.__cause__ = error.__cause__
            append.outcome = None


def _in_doubt(append: Append, why: str) -> AppendInDoubt:
    ids = [] if append.outcome is None else [record.id for record in append.outcome.records]
    return AppendInDoubt(
        f"appending to session {append.session!r}: {why}; don't send, and try the same events again "
        "once it is back",
        session=append.session, ids=ids,
    )  # fmt: skip


def _doing(sessions: Sequence[str]) -> str:
    if len(sessions) == 1:
        return f"appending to session {sessions[0]!r}"
    return f"appending to {len(sessions)} sessions"


def _count(groups: list[Group]) -> int:
    """Return how many records may be written at most: chunks may have to be told apart again."""
    return sum(
        max(len(group.drafts), len(group.appends))
        if isinstance(group.drafts, list)
        else DRAFTS_AT_ONCE
        for group in groups
    )
