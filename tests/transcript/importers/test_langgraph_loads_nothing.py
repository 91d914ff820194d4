"""A checkpoint names classes and methods to call; none of them is imported, made or called."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from checkpoint_databases import Checkpoints, ai, extension, human
from foreign_imports import imported

from onrecord.transcript.importers import langgraph, langgraph_tables


@pytest.fixture
def file(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path / "checkpoints.db")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Give a path at which a file appears if anything that the tests store is run."""
    return tmp_path / "it ran"


def hostile(trace: Path) -> dict[str, Any]:
    command = f"touch '{trace}'"
    return {
        "function": extension(0, "os", "system", command),
        "arguments": extension(1, "os", "system", [command]),
        "class": extension(2, "subprocess", "Popen", {"args": command, "shell": True}),
        "method": extension(3, "os", "path", command, "exists"),
        "pydantic-1": extension(4, "subprocess", "Popen", {"args": command, "shell": True}),
        "pydantic-2": extension(5, "subprocess", "run", {"args": command, "shell": True}, "run"),
        "message-elsewhere": extension(5, "evil.messages.human", "HumanMessage", {"content": "x"}),
        "wrong-code": extension(
            0, "langchain_core.messages.human", "HumanMessage", {"content": "x"}
        ),
        "no-list": msgspec.msgpack.Ext(5, b"\xc0"),
        "short": msgspec.msgpack.Ext(5, b"\x91\xa2os"),
        "broken": msgspec.msgpack.Ext(5, b"\x93\xa2os\xa6sys"),
        "unknown-code": msgspec.msgpack.Ext(77, b"\xc0"),
        "names-of-numbers": extension(5, 1, 2, {}),
        "text": "a text",
        "nothing": None,
    }


@pytest.mark.parametrize("name", hostile(Path()))
def test_what_names_anything_but_a_message_is_a_fault_and_is_not_loaded(
    file: Checkpoints, trace: Path, name: str
) -> None:
    id = file.add(human("h", "one"), hostile(trace)[name], ai("a", "two"))

    session = imported(langgraph, file.path, "t")

    assert not trace.exists()
    assert session.rows == [("user", "one"), ("assistant", "two")]
    assert session.faults == [("unreadable-in-source", f"checkpoints {id} messages[1]")]


def test_what_a_checkpoint_names_beside_messages_stays_closed(
    file: Checkpoints, trace: Path
) -> None:
    inside = hostile(trace)["class"]
    file.add(
        human("h", "one", additional_kwargs={"x": inside}),
        ai(
            "a", [{"type": "text", "text": "two"}, {"type": "image", "data": inside}],
            usage_metadata={"x": inside},
        ),
        other=hostile(trace)["function"], summary=inside,
    )  # fmt: skip

    session = imported(langgraph, file.path, "t")

    assert not trace.exists()
    assert session.rows == [("user", "one"), ("assistant", "two")]
    assert session.faults == []


def test_the_module_that_a_checkpoint_names_is_not_even_imported(
    file: Checkpoints, tmp_path: Path, trace: Path
) -> None:
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "trap.py").write_text(f"open({str(trace)!r}, 'w').close()")
    file.add(human("h", "one"), *(extension(code, "trap", "Trap", {}, "go") for code in range(8)))
    code = (
        "import sys\nfrom pathlib import Path\nfrom onrecord.transcript.importers import langgraph\n"
        "with langgraph.open_source(Path(sys.argv[1])) as source:\n"
        "    print(sum(len(list(entries)) for _, entries in source.sessions()))\n"
        "assert 'trap' not in sys.modules"
    )

    path = [str(folder), *sys.path]
    ran = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {path!r}\n{code}", str(file.path)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) > 1
    assert not trace.exists()


class Bomb:
    """Runs a command when a pickle of it is loaded."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (str(self.trace), "w"))


def test_a_pickle_is_never_loaded(file: Checkpoints, trace: Path) -> None:
    first = file.add(human("h", "one"))
    bomb = file.store("pickle", pickle.dumps(Bomb(trace)))
    file.add(human("h", "one"), ai("a", "two"))
    file.write(first, pickle.dumps(Bomb(trace)), type="pickle")
    file.write(file.last or "", pickle.dumps(Bomb(trace)), type="pickle")
    file.write(file.last or "", pickle.dumps(Bomb(trace)), channel="__error__", type="pickle")

    session = imported(langgraph, file.path, "t")

    assert not trace.exists()
    assert session.rows == [("user", "one"), ("assistant", "two")]
    assert session.faults == [
        ("unreadable-in-source", f"checkpoints {bomb}"),
        ("unreadable-in-source", f"writes {file.last} task 1"),
    ]
    pickle.loads(pickle.dumps(Bomb(trace)))
    assert trace.exists()  # it would have shown


@pytest.mark.parametrize(
    ("type", "stored", "code"),
    [
        ("msgpack", b"\xdd\xff\xff\xff\xff", "unreadable-in-source"),
        ("msgpack", b"\x91" * 100_000, "unreadable-in-source"),
        ("msgpack", b"\x81\xaechannel_values\xc1", "unreadable-in-source"),
        ("msgpack", msgspec.msgpack.encode({"channel_values": {1: 2}}), "unreadable-in-source"),
        ("msgpack", msgspec.msgpack.encode({"channel_values": {"messages": "x"}}), "unreadable-in-source"),
        ("json", b"{", "unreadable-in-source"),
        ("json", b"[" * 100_000, "unreadable-in-source"),
        ("yaml", b"", "unreadable-in-source"),
        ("msgpack+aes", b"secret", "content-unrecoverable"),
    ],
)  # fmt: skip
def test_a_checkpoint_that_cannot_be_read_is_a_fault_and_the_next_is_read(
    file: Checkpoints, type: str, stored: bytes, code: str
) -> None:
    file.add(human("h", "one"))
    id = file.store(type, stored)
    file.add(human("h", "one"), ai("a", "two"))

    session = imported(langgraph, file.path, "t")

    assert session.rows == [("user", "one"), ("assistant", "two")]
    assert session.faults == [(code, f"checkpoints {id}")]


def test_a_checkpoint_that_is_too_large_is_not_read(
    file: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(langgraph_tables, "VALUE_LIMIT", 2_000)
    file.add(human("h", "one"))
    id = file.add(human("h", "one"), ai("a", "x" * 2_000))

    session = imported(langgraph, file.path, "t")

    assert session.rows == [("user", "one")]
    assert session.faults == [("unreadable-in-source", f"checkpoints {id}")]


def test_json_of_older_versions_is_read_by_the_same_rule(file: Checkpoints, trace: Path) -> None:
    def made(*path: str, **fields: Any) -> dict[str, Any]:
        return {"lc": 2, "type": "constructor", "id": list(path), "kwargs": fields}

    values = [
        made("langchain", "schema", "messages", "HumanMessage", content="one", id="h"),
        made("os", "system", args=[f"touch {trace}"]),
        made("langchain_core", "messages", "ai", "AIMessage", content="two", id="a"),
    ]
    checkpoint = {"ts": "", "channel_values": {"messages": values}, "channel_versions": {}}
    id = file.store("json", json.dumps(checkpoint).encode())

    session = imported(langgraph, file.path, "t")

    assert not trace.exists()
    assert session.rows == [("user", "one"), ("assistant", "two")]
    assert session.faults == [("unreadable-in-source", f"checkpoints {id} messages[1]")]
