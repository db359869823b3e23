"""One script for both sides: our scripted model, and an adapter that makes a model of the reference of it."""

from typing import Any

from strands.models import Model as StrandsModel
from tests.differential.sdk import plain

from countersign import ScriptedModel


class Recording(ScriptedModel):
    """Our scripted model; keeps what it was given."""

    def __init__(self, script: Any, seen: list[Any]) -> None:
        super().__init__(script)
        self._seen = seen

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        choice, names = kwargs.get("tool_choice"), [spec["name"] for spec in (args[0] if args else None) or ()]
        forced = [{"role": "forced", "content": [{"text": f"{choice} of {names}"}]}] if choice else []
        self._seen.append([*plain(messages), *forced])
        async for event in super().stream(messages, *args, **kwargs):
            yield event


class StrandsRecording(StrandsModel):
    """The same as a model of the reference, which does not number its calls."""

    def __init__(self, script: Any, seen: list[Any]) -> None:
        self._inner = Recording(script, seen)
        self._calls = 0

    def update_config(self, **model_config: Any) -> None:
        """It has none."""

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, tool_specs: Any = None, system_prompt: Any = None, **kwargs: Any) -> Any:
        call, self._calls = self._calls, self._calls + 1
        choice = kwargs.get("tool_choice")
        async for event in self._inner.stream(messages, tool_specs, system_prompt, call=call, tool_choice=choice):
            yield event


MODELS = {"countersign": Recording, "strands": StrandsRecording}
"""Makes a side's model from a script and a list for what the model sees."""
