"""Drive the OpenAI Agents SDK through all runs (or those that are named), and keep its databases.

PYTHON_OF_THE_SDK drive.py OUT_FOLDER MODEL_URL [RUN …]
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from agents import (  # type: ignore[import-not-found, unused-ignore]
    Agent,
    Model,
    ModelResponse,
    OpenAIChatCompletionsModel,
    RunHooks,
    Runner,
    SQLiteSession,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from agents.extensions.memory import (  # type: ignore[import-not-found, unused-ignore]
    AdvancedSQLiteSession,
)
from agents.memory import (  # type: ignore[import-not-found, unused-ignore]
    OpenAIResponsesCompactionSession,
)
from keeping import Runs, full_disk, killed, say
from openai import AsyncOpenAI
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseFunctionWebSearch,
    ResponseOutputMessage,
    ResponseReasoningItem,
)

DATABASE = "sessions.db"
KILL_AFTER = 4
"""Pieces of a stream after which the process kills itself."""

LOG = {
    "to": "What is an event log?",
    "text": "What happened, in order, and never changed.",
    "times": 0,
}
COUNT = {
    "to": "Count to ten.",
    "text": "One. Two. Three. Four. Five. Six. Seven. Eight. Nine. Ten.",
    "size": 6,
    "pause": 0.02,
}
STORY = {"to": "story", "text": "Once upon a time nobody read a log, and a fact was lost."}
STILL = {"to": "Are you still there?", "text": "Yes. What did I say before?"}

RUNS = Runs("openai-agents", DATABASE, f"{DATABASE}-wal")


@function_tool  # type: ignore[untyped-decorator, unused-ignore]
def weather(city: str) -> str:
    """Tell the weather of a city."""
    return {"Oslo": "rain, 4 degrees", "Rome": "sun, 21 degrees"}[city]


@function_tool(needs_approval=True)  # type: ignore[untyped-decorator, unused-ignore]
def delete_account(user: str) -> str:
    """Delete an account."""
    return f"{user} is gone"


def agent(url: str) -> Any:
    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
    return Agent(
        name="Helper",
        instructions="Answer in one sentence.",
        model=OpenAIChatCompletionsModel(model="scripted", openai_client=client),
        tools=[weather, delete_account],
    )


async def ask(helper: Any, text: str, session: Any, hooks: Any = None) -> Any:
    return await Runner.run(helper, text, session=session, hooks=hooks)


async def ask_streamed(helper: Any, text: str, session: Any) -> str:
    """Return what was shown."""
    shown = ""
    async for event in Runner.run_streamed(helper, text, session=session).stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            shown += event.data.delta
    return shown


@RUNS.run()
async def turns(folder: Path, url: str) -> None:
    """Two sessions: a turn of text, one with two tools called at once, a streamed one."""
    calls = [
        {"name": "weather", "arguments": {"city": city}, "id": f"call_{city}"}
        for city in ("Oslo", "Rome")
    ]
    say(
        url, LOG,
        {"to": "weather", "text": "Let me look at both.", "calls": calls},
        {"to": "21 degrees", "text": "Oslo has rain at 4 degrees, Rome has sun at 21."},
        {"to": "five words", "text": "What happened, kept in order.", "size": 5},
    )  # fmt: skip
    helper, session = agent(url), SQLiteSession("turns", folder / DATABASE)
    await ask(helper, "What is an event log?", session)
    await ask(helper, "How is the weather in Oslo and Rome?", session)
    await ask_streamed(helper, "Say it in five words.", session)
    other = SQLiteSession("other", folder / DATABASE)
    await ask(helper, "What is an event log?", other)
    session.close()
    other.close()


@RUNS.run()
async def cut(folder: Path, url: str) -> None:
    """The connection ends after 40 characters of a streamed answer; the SDK stores them as a whole one."""
    say(
        url,
        {
            "to": "story",
            "text": "Once upon a time nobody read a log, and a fact was lost.",
            "cut": 40,
        },
        STILL,
    )
    helper, session = agent(url), SQLiteSession("cut", folder / DATABASE)
    await ask_streamed(helper, "Tell me a story.", session)
    await ask(helper, "Are you still there?", session)
    session.close()


@RUNS.run(("alternation-broken-in-source", "the answer that broke off was shown, and isn't stored"))
async def reset(folder: Path, url: str) -> None:
    """The connection is reset after 40 characters of a streamed answer, and the next turn knows none."""
    say(url, {**STORY, "cut": 40, "reset": True, "pause": 0.02}, STILL)
    helper, session = agent(url), SQLiteSession("reset", folder / DATABASE)
    try:
        shown = await ask_streamed(helper, "Tell me a story.", session)
    except Exception as error:  # noqa: BLE001  whatever a broken connection is to the SDK
        print(f"  {type(error).__name__}: {error}")
    else:
        raise AssertionError(f"the connection was to be reset; shown: {shown}")
    await ask(helper, "Are you still there?", session)
    session.close()


@RUNS.run(
    ("torn-tail", "the last message of the user has no answer, though four pieces were shown")
)
async def kill(folder: Path, url: str) -> None:
    """Kill -9 in the middle of a streamed answer; the WAL is left as it was."""
    say(url, LOG, COUNT)
    await asyncio.to_thread(killed, "kill", folder, url)


async def kill_child(folder: Path, url: str) -> None:
    helper, session = agent(url), SQLiteSession("kill", folder / DATABASE)
    await ask(helper, "What is an event log?", session)
    pieces = 0
    async for event in Runner.run_streamed(
        helper, "Count to ten.", session=session
    ).stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            pieces += 1
            if pieces == KILL_AFTER:
                os.kill(os.getpid(), signal.SIGKILL)


class Afterwards(RunHooks):  # type: ignore[misc, unused-ignore]
    """Does something when the model has answered, before the answer is stored."""

    def __init__(self, do: Any) -> None:
        self.do = do

    async def on_llm_end(self, *_: Any) -> None:
        self.do()


@RUNS.run(("alternation-broken-in-source", "the answer between two messages of the user was lost"))
async def full(folder: Path, url: str) -> None:
    """The disk is full when an answer is to be stored; the next turn knows nothing of it."""
    say(
        url, LOG, {"to": "Fill the disk.", "text": "This answer is shown, and never stored."}, STILL
    )
    helper, session = agent(url), SQLiteSession("full", folder / DATABASE)
    await ask(helper, "What is an event log?", session)
    with full_disk() as fill:
        hooks = Afterwards(lambda: fill(folder / f"{DATABASE}-wal"))
        try:
            await ask(helper, "Fill the disk.", session, hooks)
        except Exception as error:  # noqa: BLE001  sqlite3's, in this version
            print(f"  {type(error).__name__}: {error}")
        else:
            raise AssertionError("the answer was stored though the disk was full")
    await ask(helper, "Are you still there?", session)
    session.close()


@RUNS.run(
    ("unanswered-tool-call", "the call that waited for approval"),
    ("alternation-broken-in-source", "a cancelled turn has no answer"),
)
async def interrupted(folder: Path, url: str) -> None:
    """A call waits for an approval that never comes; later a streamed turn is cancelled."""
    deletion = {"name": "delete_account", "arguments": {"user": "kim"}, "id": "call_delete"}
    say(
        url,
        {"to": "Delete", "calls": [deletion]},
        {"to": "Never", "text": "It stays."},
        COUNT,
        STILL,
    )
    helper, session = agent(url), SQLiteSession("interrupted", folder / DATABASE)
    assert (await ask(helper, "Delete my account.", session)).interruptions
    await ask(helper, "Never mind.", session)
    streamed = Runner.run_streamed(helper, "Count to ten.", session=session)
    async for event in streamed.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            streamed.cancel()
    await ask(helper, "Are you still there?", session)
    session.close()


@RUNS.run(("gap", "the two messages that were taken back"))
async def undo(folder: Path, url: str) -> None:
    """A turn is taken back with pop_item, and the corrected message follows."""
    say(
        url,
        LOG,
        {"to": "two", "text": "A table for two."},
        {"to": "four", "text": "A table for four."},
    )
    helper, session = agent(url), SQLiteSession("undo", folder / DATABASE)
    await ask(helper, "What is an event log?", session)
    await ask(helper, "Book a table for two.", session)
    await session.pop_item()
    await session.pop_item()
    await ask(helper, "Book a table for four.", session)
    session.close()


@RUNS.run(("gap", "the two messages that were cleared"))
async def cleared(folder: Path, url: str) -> None:
    """A turn, clear_session, and a turn."""
    say(url, LOG, {"to": "four", "text": "A table for four."})
    helper, session = agent(url), SQLiteSession("cleared", folder / DATABASE)
    await ask(helper, "What is an event log?", session)
    await session.clear_session()
    await ask(helper, "Book a table for four.", session)
    session.close()


@RUNS.run()
async def branches(folder: Path, url: str) -> None:
    """AdvancedSQLiteSession: a branch from the second turn, then on with main; the usage of each turn."""
    oslo = {"name": "weather", "arguments": {"city": "Oslo"}, "id": "call_oslo"}
    say(
        url,
        {"to": "Where do we go?", "text": "To the sea.", "tokens": [40, 4]},
        {"to": "By train or by car?", "text": "By train.", "tokens": [60, 3]},
        {"to": "By bicycle?", "text": "By bicycle, then.", "tokens": [61, 5]},
        {"to": "rainy", "calls": [oslo], "tokens": [80, 9]},
        {"to": "4 degrees", "text": "It rains in Oslo.", "tokens": [99, 6]},
    )
    helper = agent(url)
    session = AdvancedSQLiteSession(
        session_id="trip", db_path=folder / DATABASE, create_tables=True
    )
    for text in ("Where do we go?", "By train or by car?"):
        await session.store_run_usage(await ask(helper, text, session))
    await session.create_branch_from_turn(2, "bicycle")
    await session.store_run_usage(await ask(helper, "By bicycle?", session))
    await session.switch_to_branch("main")
    await session.store_run_usage(await ask(helper, "Where is it rainy?", session))
    session.close()


class Responses(Model):  # type: ignore[misc, unused-ignore]
    """A model that answers with items of the Responses interface, as OpenAI's own does."""

    def __init__(self, *outputs: list[Any]) -> None:
        self.outputs = list(outputs)

    async def get_response(self, *_: Any, **__: Any) -> Any:
        return ModelResponse(output=self.outputs.pop(0), usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("these runs don't stream")


def message(id: str, text: str) -> Any:
    part = {"type": "output_text", "text": text, "annotations": []}
    return ResponseOutputMessage.model_validate(
        {
            "id": id,
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
    )


@RUNS.run()
async def items(folder: Path, url: str) -> None:
    """Items of the Responses interface: reasoning, a search that the provider did, a call, a message."""

    summary = [{"type": "summary_text", "text": "Search first."}]
    searched = {"type": "search", "query": "Oslo"}
    called = {"call_id": "call_1", "name": "weather", "arguments": '{"city":"Oslo"}'}
    model = Responses(
        [
            ResponseReasoningItem.model_validate(
                {"id": "rs_1", "type": "reasoning", "summary": summary}
            ),
            ResponseFunctionWebSearch.model_validate(
                {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": searched}
            ),
            message("msg_1", "I have found Oslo; now its weather."),
            ResponseFunctionToolCall.model_validate(
                {"id": "fc_1", "type": "function_call", **called}
            ),
        ],
        [message("msg_2", "It rains in Oslo.")],
    )
    session = SQLiteSession("items", folder / DATABASE)
    await ask(Agent(name="Helper", model=model, tools=[weather]), "And in Oslo?", session)
    session.close()


class Compactor:
    """Compacts as OpenAI's servers do: the user's messages stay, and the rest is one encrypted item."""

    def __init__(self) -> None:
        self.responses = self

    async def compact(self, *, input: list[Any], **_: Any) -> Any:  # noqa: A002  as the SDK calls it
        kept = [item for item in input if item.get("role") == "user"]
        compaction = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAA"}
        return SimpleNamespace(output=[*kept, compaction], usage=None)


@RUNS.run(
    ("gap", "the four messages that the compaction replaced"),
    ("content-unrecoverable", "the compaction, which is encrypted"),
    ("alternation-broken-in-source", "the first message that was kept, without its answer"),
    ("alternation-broken-in-source", "the second one"),
)
async def compacted(folder: Path, url: str) -> None:
    """OpenAIResponsesCompactionSession replaces two turns, and a third follows."""
    answers = ("What happened, in order.", "A table for two.", "A table for four.")
    model = Responses(*([message(f"msg_{n}", text)] for n, text in enumerate(answers)))
    stored = SQLiteSession("compacted", folder / DATABASE)
    session = OpenAIResponsesCompactionSession("compacted", stored, client=Compactor())
    helper = Agent(name="Helper", model=model)
    await ask(helper, "What is an event log?", session)
    await ask(helper, "Book a table for two.", session)
    await session.run_compaction({"force": True, "compaction_mode": "input"})
    await ask(helper, "Book a table for four.", session)
    stored.close()


if __name__ == "__main__":
    set_tracing_disabled(True)
    if sys.argv[1] == "--child":
        asyncio.run(kill_child(Path(sys.argv[3]), sys.argv[4]))
    else:
        RUNS.drive()
