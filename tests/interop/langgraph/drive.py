"""Drive LangGraph with its SqliteSaver through all runs (or those that are named), and keep its databases.

PYTHON_OF_LANGGRAPH drive.py OUT_FOLDER MODEL_URL [RUN …]
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import httpx
from chat_graphs import Chat, Deltas, Summarised, chat_graph, weather
from keeping import Runs, full_disk, killed, say
from langchain_core.messages import (  # type: ignore[import-not-found, unused-ignore]
    AIMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
)
from langgraph.checkpoint.sqlite import (  # type: ignore[import-not-found, unused-ignore]
    SqliteSaver,
)
from langgraph.graph import (  # type: ignore[import-not-found, unused-ignore]
    END,
    START,
    MessagesState,
    StateGraph,
)
from langgraph.graph.message import (  # type: ignore[import-not-found, unused-ignore]
    REMOVE_ALL_MESSAGES,
)
from langgraph.prebuilt import (  # type: ignore[import-not-found, unused-ignore]
    ToolNode,
    tools_condition,
)
from langgraph.types import (  # type: ignore[import-not-found, unused-ignore]
    Command,
    interrupt,
)

DATABASE = "checkpoints.db"
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
STILL = {"to": "Are you still there?", "text": "Yes. What did I say before?"}

RUNS = Runs("langgraph", DATABASE, f"{DATABASE}-wal")


@contextmanager
def compiled(folder: Path, graph: Any) -> Iterator[Any]:
    with SqliteSaver.from_conn_string(str(folder / DATABASE)) as saver:
        yield graph.compile(checkpointer=saver)


def ask(app: Any, text: str, thread: str = "one", **config: str) -> Any:
    human = HumanMessage(text, id="-".join(text.lower().strip(".?").split()))
    return app.invoke({"messages": [human]}, at(thread, **config))


def at(thread: str, **config: str) -> Any:
    return {"configurable": {"thread_id": thread, **config}}


@RUNS.run()
async def turns(folder: Path, url: str) -> None:
    """Two threads: a turn of text, one with two tools called at once, a streamed one; a system prompt."""
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
    with compiled(folder, chat_graph(Chat(url))) as app:
        ask(app, "What is an event log?")
        ask(app, "How is the weather in Oslo and Rome?")
        system = SystemMessage("Answer in one sentence.", id="system")
        app.update_state(at("two"), {"messages": [system]}, as_node="__start__")
        ask(app, "What is an event log?", "two")
    with compiled(folder, chat_graph(Chat(url, lambda _: None))) as app:
        ask(app, "Say it in five words.")


@RUNS.run(("alternation-broken-in-source", "the answer that broke off was shown, and isn't stored"))
async def cut(folder: Path, url: str) -> None:
    """The connection ends after 40 characters of a streamed answer; the next turn knows nothing of them."""
    story = {"to": "story", "text": "Once upon a time nobody read a log, and a fact was lost."}
    say(url, {**story, "cut": 40, "reset": True, "pause": 0.02}, STILL)
    with compiled(folder, chat_graph(Chat(url, lambda _: None))) as app:
        try:
            ask(app, "Tell me a story.")
        except httpx.HTTPError as error:
            print(f"  {type(error).__name__}: {error}")
        else:
            raise AssertionError("the connection was to be reset")
        ask(app, "Are you still there?")


@RUNS.run(("torn-tail", "the answer that was being streamed"))
async def kill(folder: Path, url: str) -> None:
    """Kill -9 in the middle of a streamed answer; the WAL is left as it was."""
    say(url, LOG, COUNT)
    await asyncio.to_thread(killed, "kill", folder, url)


def kill_child(folder: Path, url: str) -> None:
    def shown(text: str) -> None:
        if "Three" in text:
            os.kill(os.getpid(), signal.SIGKILL)

    with compiled(folder, chat_graph(Chat(url, shown))) as app:
        ask(app, "What is an event log?")
        ask(app, "Count to ten.")


@RUNS.run(("torn-tail", "the answer of the node that was done, in a step that never was"))
async def kill_between(folder: Path, url: str) -> None:
    """Two nodes answer at once; kill -9 when one has: its answer is a pending write of a step without end."""
    say(url, LOG, {"to": "Ask two.", "text": "I am the first."})
    await asyncio.to_thread(killed, "kill_between", folder, url)


def kill_between_child(folder: Path, url: str) -> None:
    def slow(_: Any) -> Any:
        time.sleep(2)
        os.kill(os.getpid(), signal.SIGKILL)

    graph = StateGraph(MessagesState)
    graph.add_node("first", Chat(url))
    graph.add_node("second", slow)
    graph.add_conditional_edges(START, lambda _: ["first", "second"])
    with compiled(folder, chat_graph(Chat(url))) as app:
        ask(app, "What is an event log?")
    with compiled(folder, graph) as app:
        ask(app, "Ask two.")


@RUNS.run(("alternation-broken-in-source", "the answer between two messages of the user was lost"))
async def full(folder: Path, url: str) -> None:
    """The disk is full when an answer is to be stored; the next turn knows nothing of it."""
    say(
        url,
        LOG,
        {"to": "Fill the disk.", "text": "This answer is shown, and never stored.", "times": 0},
        STILL,
    )
    with full_disk() as fill:

        def shown(text: str) -> None:
            if text.startswith("This answer is shown"):
                fill(folder / f"{DATABASE}-wal")

        with compiled(folder, chat_graph(Chat(url, shown))) as app:
            ask(app, "What is an event log?")
            try:
                ask(app, "Fill the disk.")
            except Exception as error:  # noqa: BLE001  sqlite3's, in this version
                print(f"  {type(error).__name__}: {error}")
            else:
                raise AssertionError("the answer was stored though the disk was full")
    with compiled(folder, chat_graph(Chat(url))) as app:
        ask(app, "Are you still there?")


@RUNS.run(("unanswered-tool-call", "the call that waited when the next message came"))
async def interrupted(folder: Path, url: str) -> None:
    """An interrupt before a tool: one is resumed, one waits when the next message comes, one waits still."""
    oslo = {"name": "weather", "arguments": {"city": "Oslo"}}
    say(
        url,
        {"to": "Oslo", "calls": [{**oslo, "id": "call_1"}]},
        {"to": "4 degrees", "text": "It rains.", "times": 0},
        {"to": "again", "calls": [{**oslo, "id": "call_2"}]},
        {"to": "Never mind", "text": "As you like."},
        {"to": "at last", "calls": [{**oslo, "id": "call_3"}]},
    )

    def approve(state: Any) -> Any:
        return {} if interrupt("May I look?") else Command(goto=END)

    graph = StateGraph(MessagesState)
    graph.add_node("chat", Chat(url))
    graph.add_node("approve", approve)
    graph.add_node("tools", ToolNode([weather]))
    graph.add_edge(START, "chat")
    graph.add_conditional_edges("chat", tools_condition, {"tools": "approve", END: END})
    graph.add_edge("approve", "tools")
    graph.add_edge("tools", "chat")
    with compiled(folder, graph) as app:
        ask(app, "And in Oslo?")
        app.invoke(Command(resume=True), at("one"))
        ask(app, "And again?")
        ask(app, "Never mind.")
        ask(app, "And at last?")


@RUNS.run()
async def fork(folder: Path, url: str) -> None:
    """Time travel: the second turn is begun anew from the checkpoint before it."""
    say(
        url,
        LOG,
        {"to": "two", "text": "A table for two."},
        {"to": "four", "text": "A table for four."},
    )
    with compiled(folder, chat_graph(Chat(url))) as app:
        ask(app, "What is an event log?")
        before = app.get_state(at("one")).config["configurable"]["checkpoint_id"]
        ask(app, "Book a table for two.")
        ask(app, "Book a table for four.", checkpoint_id=before, checkpoint_ns="")


@RUNS.run()
async def replayed(folder: Path, url: str) -> None:
    """Time travel into a turn: the model is asked again about the same message, and says something else."""
    say(url, LOG, {"to": "number", "text": "Seven."}, {"to": "number", "text": "Eleven."})
    with compiled(folder, chat_graph(Chat(url))) as app:
        ask(app, "What is an event log?")
        ask(app, "Name a number.")
        before = next(s for s in app.get_state_history(at("one")) if s.next == ("chat",))
        app.invoke(None, before.config)


@RUNS.run()
async def removed(folder: Path, url: str) -> None:
    """RemoveMessage: the oldest are dropped for a summary; later a message is edited, and all are removed."""
    say(
        url,
        LOG,
        {"to": "two", "text": "A table for two."},
        {"to": "four", "text": "A table for four."},
    )

    def tidy(state: Any) -> Any:
        if len(state["messages"]) <= 4:
            return {}
        return {
            "messages": [RemoveMessage(id=message.id) for message in state["messages"][:-2]],
            "summary": "The user asked about event logs and booked a table for two.",
        }

    graph = StateGraph(Summarised)
    graph.add_node("chat", Chat(url))
    graph.add_node("tidy", tidy)
    graph.add_edge(START, "chat")
    graph.add_edge("chat", "tidy")
    with compiled(folder, graph) as app:
        ask(app, "What is an event log?")
        ask(app, "Book a table for two.")
        ask(app, "Book a table for four.")
        edited = AIMessage(
            "A table for four, at eight.", id=app.get_state(at("one")).values["messages"][-1].id
        )
        app.update_state(at("one"), {"messages": [edited]}, as_node="tidy")
        app.update_state(
            at("one"), {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES)]}, as_node="tidy"
        )
        ask(app, "What is an event log?")


@RUNS.run()
async def subgraph(folder: Path, url: str) -> None:
    """A graph in a graph, with checkpoints of its own."""
    say(
        url,
        {
            "to": "weather",
            "calls": [{"name": "weather", "arguments": {"city": "Oslo"}, "id": "call_1"}],
        },
        {"to": "4 degrees", "text": "It rains in Oslo."},
    )
    inner = chat_graph(Chat(url)).compile(checkpointer=True)
    graph = StateGraph(MessagesState)
    graph.add_node("expert", inner)
    graph.add_edge(START, "expert")
    with compiled(folder, graph) as app:
        ask(app, "How is the weather in Oslo?")


@RUNS.run()
async def deltas(folder: Path, url: str) -> None:
    """The messages are a DeltaChannel: checkpoints hold what was added, and a snapshot now and then."""
    say(
        url,
        LOG,
        {"to": "two", "text": "A table for two."},
        {"to": "four", "text": "A table for four."},
    )
    with compiled(folder, chat_graph(Chat(url), Deltas)) as app:
        ask(app, "What is an event log?")
        before = app.get_state(at("one")).config["configurable"]["checkpoint_id"]
        ask(app, "Book a table for two.")
        ask(app, "Book a table for four.", checkpoint_id=before, checkpoint_ns="")


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        child = {"kill": kill_child, "kill_between": kill_between_child}[sys.argv[2]]
        child(Path(sys.argv[3]), sys.argv[4])
    else:
        RUNS.drive()
