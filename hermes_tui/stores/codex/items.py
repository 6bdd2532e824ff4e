"""What an item or event of Codex says to a person: kind, role, name and text (facts/codex.md sections 2, 3)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from hermes_tui.model import MessageKind
from hermes_tui.stores.codex.rollout import mapping, string

INJECTED: Final = (
    "<environment_context>", "# AGENTS.md instructions", "<INSTRUCTIONS>", "<user_instructions>", "<turn_aborted>",
    "<subagent_notification>", "<permissions instructions>", "<skills_instructions>", "<skill>", "<model_switch>",
    "<user_shell_command>", "<collaboration_mode>", "<tools>", "<apps_instructions>", "<plugins_instructions>",
    "<hook_prompt>", "<recommended_plugins>", "<goal_context>",
)  # fmt: skip
"""How texts begin that the program injects with role user (facts/codex.md section 3)."""
REQUEST_MARK: Final = "## My request for Codex:"
"""Older editor clients put context before this line; the prompt is what follows."""
_IMAGE_TAGS: Final = ("<image name=", "<image>", "</image>")
IMAGE_ONLY: Final = "[Image]"
"""What the program calls a prompt without text (facts/codex.md section 8)."""
MARK_LENGTH: Final = 200
"""Characters of an unknown record that are shown."""


class Nature(NamedTuple):
    """What kind of entry an item is."""

    kind: MessageKind
    role: str | None
    name: str | None = None
    call_id: str | None = None


PROMPT: Final = Nature("prompt", "user")
CONTEXT: Final = Nature("context", "user")
_CALLS: Final = {
    "function_call": None, "custom_tool_call": None, "mcp_tool_call": None, "local_shell_call": "local_shell",
    "web_search_call": "web_search", "image_generation_call": "image_generation", "tool_search_call": "tool_search",
}  # fmt: skip
_OUTPUTS: Final = frozenset(
    {"function_call_output", "custom_tool_call_output", "mcp_tool_call_output", "tool_search_output"}
)
PAIRED_CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call", "tool_search_call"})
"""Calls the model expects an output for."""
OUTPUT_OF: Final = {
    "function_call": "function_call_output", "local_shell_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output", "tool_search_call": "tool_search_output",
}  # fmt: skip
_ROLES: Final = frozenset({"user", "assistant", "developer", "system", "tool"})


def nature(payload: Mapping[str, object]) -> Nature:
    """What a response item is; a user's message is context or prompt by :func:`is_prompt`."""
    kind = string(payload.get("type"))
    if kind == "message":
        return _message_nature(payload)
    call_id = string(payload.get("call_id"))
    if kind == "reasoning":
        return Nature("reasoning", None)
    if kind is not None and kind in _CALLS:
        return Nature("tool-call", None, string(payload.get("name")) or _CALLS[kind], call_id or _own_id(kind, payload))
    if kind in _OUTPUTS:
        return Nature("tool-result", None, string(payload.get("name")), call_id)
    if kind == "agent_message":
        return Nature("context", string(payload.get("role")))
    if kind in ("compaction", "context_compaction", "compaction_summary"):
        return Nature("summary", None)
    if kind == "ghost_snapshot":
        return Nature("notice", None)
    return Nature("unknown", None)


def _own_id(kind: str, payload: Mapping[str, object]) -> str | None:
    """A shell call of the oldest clients has only an item id, which its output names."""
    return string(payload.get("id")) if kind == "local_shell_call" else None


def _message_nature(payload: Mapping[str, object]) -> Nature:
    role = payload.get("role")
    role = role if isinstance(role, str) and role in _ROLES else None
    if role == "assistant":
        return Nature("reply", role)
    if role == "user":
        return CONTEXT if is_prompt(payload) is False else PROMPT
    return Nature("context" if role else "unknown", role)


def is_prompt(payload: Mapping[str, object]) -> bool | None:
    """Whether a raw user message is a real prompt; ``None`` when only an event beside it can tell (section 3)."""
    return _is_prompt(_content_kinds(payload), message_text(payload))


def _is_prompt(kinds: Sequence[str], text: str) -> bool | None:
    if kinds:
        return any(kind.startswith("user.") for kind in kinds)
    return False if text.lstrip().startswith(INJECTED) else None


def user_said(payload: Mapping[str, object]) -> tuple[bool | None, str, str]:
    """Of a raw user message :func:`is_prompt`, :func:`prompt_text` and :func:`message_text`."""
    kinds, content = _content_kinds(payload), payload.get("content")
    only = _only_text(content)
    whole = message_text(payload) if only is None else only
    return _is_prompt(kinds, whole), _prompt_text(kinds, content, only), whole


def is_contextual(payload: Mapping[str, object]) -> bool:
    """Whether a user message is context the program put there: a prompt or the summary of a compaction is none."""
    kinds = _content_kinds(payload)
    if kinds:
        return not any(kind.startswith(("user.", "compaction.")) for kind in kinds)
    return message_text(payload).lstrip().startswith(INJECTED)


def _content_kinds(payload: Mapping[str, object]) -> list[str]:
    passed_through = payload.get("internal_chat_message_metadata_passthrough")
    if type(passed_through) is not dict:
        return []
    kinds = passed_through.get("content_item_kinds")
    return [kind for kind in kinds if isinstance(kind, str)] if isinstance(kinds, list) else []


def parts_of(content: object) -> Iterator[Mapping[str, object]]:
    """The parts of a content list; a bare string is one text part."""
    if isinstance(content, str):
        yield {"type": "input_text", "text": content}
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, str):
                yield {"type": "input_text", "text": part}
            elif isinstance(part, dict):
                yield part


def _only_text(content: object) -> str | None:
    """The text of a content list that holds nothing else, as most do."""
    if type(content) is not list or len(content) != 1 or type(content[0]) is not dict:
        return None
    text = content[0].get("text")
    return text if type(text) is str and text else None


def message_text(payload: Mapping[str, object]) -> str:
    """Every text of a message, one after another: what the model is sent."""
    content = payload.get("content")
    if (only := _only_text(content)) is not None:
        return only
    return "".join(string(part.get("text")) or "" for part in parts_of(content))


def prompt_text(payload: Mapping[str, object]) -> str:
    """The prompt in a raw user message as its author typed it: without image tags and injected context."""
    content = payload.get("content")
    return _prompt_text(_content_kinds(payload), content, _only_text(content))


def _prompt_text(kinds: Sequence[str], content: object, only: str | None) -> str:
    if only is not None and not kinds and not only.startswith(_IMAGE_TAGS):
        return typed([only], False)
    texts: list[str] = []
    images = 0
    for place, part in enumerate(parts_of(content)):
        text = string(part.get("text"))
        if text is None:
            images += part.get("type") in ("input_image", "image")
        elif not text.startswith(_IMAGE_TAGS) and (place >= len(kinds) or kinds[place].startswith("user.")):
            texts.append(text)
    return typed(texts, images > 0)


def typed(texts: list[str], has_image: bool) -> str:
    """What a user typed, from the texts of a prompt."""
    text = "\n".join(texts)
    if REQUEST_MARK in text:
        text = text.rpartition(REQUEST_MARK)[2].strip()
    return text or (IMAGE_ONLY if has_image else "")


def event_prompt(payload: Mapping[str, object]) -> str:
    """The prompt in a legacy ``user_message`` event."""
    images = any(payload.get(key) for key in ("images", "local_images"))
    text = payload.get("message")
    return typed([text] if isinstance(text, str) else [], images)


def item_prompt(item: Mapping[str, object]) -> str:
    """The prompt in a ``UserMessage`` item of a paginated file."""
    content = item.get("content")
    if (only := _only_text(content)) is not None and content[0].get("type") == "text":  # type: ignore[index]
        return typed([only], False)
    parts = list(parts_of(item.get("content")))
    texts = [text for part in parts if (text := string(part.get("text"))) is not None]
    return typed(texts, any("image" in str(part.get("type")) for part in parts))


def attachments(content: object) -> tuple[str, ...]:
    """Images and files of a message by path or type, never their content."""
    found = []
    for part in parts_of(content):
        kind = str(part.get("type"))
        if "image" in kind or "audio" in kind or "file" in kind:
            found.append(string(part.get("path")) or _media(part) or kind)
    return tuple(found)


def _media(part: Mapping[str, object]) -> str | None:
    url = part.get("image_url") or part.get("audio_url") or part.get("file_url")
    if isinstance(url, dict):
        url = url.get("url")
    if not isinstance(url, str):
        return None
    return url.partition(";")[0].removeprefix("data:") if url.startswith("data:") else url[:MARK_LENGTH]


def item_text(payload: Mapping[str, object]) -> str | None:
    """The text of a response item as the model sees it; ``None`` where all of it is opaque."""
    kind = string(payload.get("type"))
    if kind in ("message", "agent_message"):
        return message_text(payload)
    if kind == "reasoning":
        return "\n".join(reasoning_texts(payload)) or None
    if kind in _OUTPUTS:
        return output_text(payload)
    if kind in ("function_call", "mcp_tool_call"):
        return _as_text(payload.get("arguments"))
    if kind == "custom_tool_call":
        return _as_text(payload.get("input"))
    if kind in ("local_shell_call", "web_search_call"):
        return _as_text(payload.get("action"))
    if kind == "tool_search_call":
        return _as_text(payload.get("arguments") or payload.get("query"))
    if kind == "image_generation_call":
        return string(payload.get("revised_prompt")) or string(payload.get("status"))
    if kind in ("compaction", "context_compaction", "compaction_summary"):
        return None
    return marked(payload)


def reasoning_texts(payload: Mapping[str, object]) -> list[str]:
    """The readable parts of a reasoning item: summary, then content."""
    return [
        text
        for key in ("summary", "content")
        for part in parts_of(payload.get(key))
        if (text := string(part.get("text"))) is not None
    ]


def output_text(payload: Mapping[str, object]) -> str:
    """What a tool gave back: a string, a list of parts, or an object holding either."""
    output = payload.get("output") if "output" in payload else payload.get("tools")
    if isinstance(output, dict):
        inner = output.get("content", output.get("output"))
        if inner is not None:
            output = inner
    if isinstance(output, list) and all(isinstance(part, dict) and "type" in part for part in output):
        return "".join(string(part.get("text")) or "" for part in parts_of(output))
    return _as_text(output) or ""


def _as_text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def marked(payload: Mapping[str, object]) -> str:
    """The beginning of a record we do not know, as JSON."""
    text = json.dumps(payload, ensure_ascii=False, default=str)
    return text if len(text) <= MARK_LENGTH else text[:MARK_LENGTH] + "…"


# ------------------------------------------------------------------------------------------------------ events


def event_text(payload: Mapping[str, object]) -> str | None:
    """The text of an event that has no raw twin (any more)."""
    kind = payload.get("type")
    if kind == "item_completed":
        return completed_text(mapping(payload.get("item")))
    if kind == "user_message":
        return event_prompt(payload)
    if kind == "agent_message":
        return string(payload.get("message"))
    if kind in ("agent_reasoning", "agent_reasoning_raw_content"):
        return string(payload.get("text"))
    if kind in ("task_complete", "turn_complete"):
        return "Turn failed: " + (string(mapping(payload.get("error")).get("message")) or "no reason given")
    if kind == "turn_aborted":
        return f"Turn ended early: {string(payload.get('reason')) or 'no reason given'}"
    if kind == "thread_rolled_back":
        return f"Rolled back {payload.get('num_turns')} turn(s)"
    if kind == "context_compacted":
        return "Context compacted"
    if kind == "thread_goal_updated":
        goal = mapping(payload.get("goal"))
        return "Goal: " + (string(goal.get("objective")) or marked(payload))
    if kind == "patch_apply_end":
        return "\n".join(filter(None, (string(payload.get("stdout")), string(payload.get("stderr"))))) or marked(
            payload
        )
    if kind == "mcp_tool_call_end":
        return _as_text(payload.get("result"))
    if kind == "web_search_end":
        return string(payload.get("query")) or marked(payload)
    return marked(payload)


_SAID: Final = frozenset({"UserMessage", "AgentMessage", "Reasoning", "ContextCompaction"})
_CALL_ITEMS: Final = frozenset({"WebSearch", "ImageGeneration"})
_TOOL_ITEMS: Final = frozenset(
    {
        "CommandExecution",
        "FileChange",
        "CollabAgentToolCall",
        "McpToolCall",
        "DynamicToolCall",
        "ImageView",
        "ToolSearch",
    }
)


def completed_nature(item: Mapping[str, object]) -> Nature:
    """What an ``item_completed`` item is, when it stands for itself."""
    kind = string(item.get("type"))
    if kind == "UserMessage":
        return PROMPT
    if kind == "AgentMessage":
        return Nature("reply", "assistant")
    if kind == "Reasoning":
        return Nature("reasoning", None)
    name, call_id = string(item.get("tool")) or kind, string(item.get("id"))
    if kind in _CALL_ITEMS:
        return Nature("tool-call", None, name, call_id)
    if kind in _TOOL_ITEMS:
        return Nature("tool-result", None, name, call_id)
    return Nature("notice", None)


def completed_text(item: Mapping[str, object]) -> str:
    """The text of an ``item_completed`` item."""
    kind = item.get("type")
    if kind == "UserMessage":
        return item_prompt(item)
    if kind == "AgentMessage":
        return "".join(string(part.get("text")) or "" for part in parts_of(item.get("content")))
    if kind == "Reasoning":
        return "\n".join(item_reasoning(item))
    if kind == "CommandExecution":
        return f"Exit code {item.get('exit_code')}\n{string(item.get('aggregated_output')) or ''}"
    if kind == "FileChange":
        changed = "\n".join(str(path) for path in mapping(item.get("changes")))
        return f"{item.get('status')}: {changed}"
    if kind == "ContextCompaction":
        return "Context compacted"
    if kind == "Plan":
        return string(item.get("text")) or marked(item)
    return marked(item)


def item_reasoning(item: Mapping[str, object]) -> list[str]:
    """The readable parts of a ``Reasoning`` item."""
    found: list[str] = []
    for key in ("summary_text", "raw_content"):
        texts = item.get(key)
        if isinstance(texts, list):
            found.extend(text for text in texts if isinstance(text, str) and text)
    return found
