"""LangGraph's SqliteSaver under a graph of an agent and its tools, one invocation a turn."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module  # a peer is installed in an environment of its own
from pathlib import Path
from typing import Any

from store import Store
from stores.langchain_chat import chat, messages, role, text
from workload import SaidTurn

_graphs = import_module("langgraph.graph")
_savers = import_module("langgraph.checkpoint.sqlite")


class LangGraph(Store):
    def __init__(self, folder: Path, variant: str) -> None:
        super().__init__(folder, variant)
        self._opened = _savers.SqliteSaver.from_conn_string(f"{folder}/checkpoints.db")
        self._said: list[Any] = []
        self._chunks: Iterable[str] = ()
        self._graph = self._compile(self._opened.__enter__())

    def close(self) -> None:
        self._opened.__exit__(None, None, None)

    def append(self, session: str, turn: SaidTurn) -> None:
        question, *self._said = chat(turn)
        self._graph.invoke({"messages": [question]}, _thread(session))

    def seed(self, session: str, turns: Iterable[SaidTurn]) -> None:
        said = [message for turn in turns for message in chat(turn)]
        self._graph.update_state(_thread(session), {"messages": said}, as_node="agent")

    def stream(self, session: str, question: str, chunks: Iterable[str]) -> None:
        self._chunks, self._said = chunks, []
        asked = {"messages": [messages.HumanMessage(question)]}
        for _ in self._graph.stream(asked, _thread(session), stream_mode="values"):
            pass

    def load(self, session: str) -> list[Any]:
        found: list[Any] = self._graph.get_state(_thread(session)).values.get("messages", [])
        return found

    def role(self, message: Any) -> str:
        return role(message)

    def text(self, message: Any) -> str:
        return text(message)

    def _compile(self, saver: Any) -> Any:
        graph = _graphs.StateGraph(_graphs.MessagesState)

        def speak(state: Any) -> dict[str, Any]:
            del state
            if self._said:
                return {"messages": [self._said.pop(0)]}
            return {"messages": [messages.AIMessage("".join(self._chunks))]}

        def next_node(state: Any) -> str:
            return "tools" if state["messages"][-1].tool_calls else str(_graphs.END)

        graph.add_node("agent", speak)
        graph.add_node("tools", speak)
        graph.add_edge(_graphs.START, "agent")
        graph.add_conditional_edges("agent", next_node, ["tools", _graphs.END])
        graph.add_edge("tools", "agent")
        return graph.compile(checkpointer=saver)


def open_store(folder: Path, variant: str) -> Store:
    return LangGraph(folder, variant)


def _thread(session: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": session}, "recursion_limit": 50}
