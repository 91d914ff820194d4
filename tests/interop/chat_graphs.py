"""Graphs of LangGraph that chat: what the driver's runs are made of."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

import httpx
from langchain_core.messages import (  # type: ignore[import-not-found, unused-ignore]
    AIMessage,
    convert_to_openai_messages,
)
from langchain_core.tools import tool  # type: ignore[import-not-found, unused-ignore]
from langgraph.channels.delta import DeltaChannel  # type: ignore[import-not-found, unused-ignore]
from langgraph.graph import (  # type: ignore[import-not-found, unused-ignore]
    START,
    MessagesState,
    StateGraph,
)
from langgraph.graph.message import (  # type: ignore[import-not-found, unused-ignore]
    _messages_delta_reducer,
)
from langgraph.prebuilt import (  # type: ignore[import-not-found, unused-ignore]
    ToolNode,
    tools_condition,
)
from typing_extensions import TypedDict


class Summarised(MessagesState):  # type: ignore[misc, unused-ignore]
    """A state that keeps a summary of the messages that it dropped."""

    summary: str


class Deltas(TypedDict):
    """A state whose messages are stored as what each step adds."""

    messages: Annotated[list[Any], DeltaChannel(_messages_delta_reducer, snapshot_frequency=3)]


@tool  # type: ignore[untyped-decorator, unused-ignore]
def weather(city: str) -> str:
    """Tell the weather of a city."""
    return {"Oslo": "rain, 4 degrees", "Rome": "sun, 21 degrees"}[city]


class Chat:
    """A node that asks the model, and streams what it says."""

    def __init__(self, url: str, shown: Callable[[str], None] | None = None) -> None:
        self.url = url
        self.shown = shown

    def __call__(self, state: Any) -> Any:
        asked = {"model": "scripted", "messages": convert_to_openai_messages(state["messages"])}
        if self.shown is None:
            answer = httpx.post(f"{self.url}/chat/completions", json=asked).json()
            return {"messages": [self._message(answer)]}
        text = ""
        with httpx.stream(
            "POST", f"{self.url}/chat/completions", json={**asked, "stream": True}
        ) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: {"):
                    choices = json.loads(line.removeprefix("data: "))["choices"]
                    text += choices[0]["delta"].get("content", "")
                    self.shown(text)
        return {"messages": [AIMessage(text)]}

    @staticmethod
    def _message(answer: Any) -> Any:
        said = answer["choices"][0]["message"]
        used = answer["usage"]
        calls = [
            {
                "name": c["function"]["name"],
                "args": json.loads(c["function"]["arguments"]),
                "id": c["id"],
            }
            for c in said.get("tool_calls", ())
        ]
        return AIMessage(
            said["content"],
            id=answer["id"],
            tool_calls=calls,
            usage_metadata={
                "input_tokens": used["prompt_tokens"],
                "output_tokens": used["completion_tokens"],
                "total_tokens": used["total_tokens"],
            },
            response_metadata={"finish_reason": answer["choices"][0]["finish_reason"]},
        )


def chat_graph(node: Any, state: Any = MessagesState) -> Any:
    """A graph of one node that answers, and of one that runs the tools."""
    graph = StateGraph(state)
    graph.add_node("chat", node)
    graph.add_node("tools", ToolNode([weather]))
    graph.add_edge(START, "chat")
    graph.add_conditional_edges("chat", tools_condition)
    graph.add_edge("tools", "chat")
    return graph
