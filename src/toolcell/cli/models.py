"""Owns what is said of the models that agents name, before one of them is asked.

Above: `cli.doctor_command`, `cli.gateway_command`. Below: `app`. Refuses to know: the network.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from toolcell.app.runtime import Runtime
from toolcell.config.resolve import agent_setting
from toolcell.config.tree import Config
from toolcell.errors import ToolcellError
from toolcell.protocol.scope import DEFAULT_AGENT


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model that agents name, as their own or as a fallback.

    Attributes:
        problem: Why it cannot be asked: no such provider, no key, no SDK; None when it can.
    """

    name: str
    agents: tuple[str, ...]
    problem: str | None

    @property
    def shown(self) -> str:
        """Return `model provider/model (agents)`."""
        return f"model {self.name} ({', '.join(self.agents)})"


def named_models(runtime: Runtime, config: Config) -> Iterator[NamedModel]:
    """Open the client of each model that is named; nothing is sent."""
    users: dict[str, list[str]] = {}
    for agent in all_agents(config):
        own = agent_setting(config, agent, "model")
        for name in dict.fromkeys((own, *agent_setting(config, agent, "fallbacks"))):
            if name:
                users.setdefault(name, []).append(agent)
    for name, agents in users.items():
        yield NamedModel(name, tuple(agents), _problem(runtime, name))


def all_agents(config: Config) -> tuple[str, ...]:
    """Return the ids of all agents, `main` first."""
    return tuple(dict.fromkeys((DEFAULT_AGENT, *config.agents.entries)))


def _problem(runtime: Runtime, name: str) -> str | None:
    try:
        runtime.providers.resolve(name)
    except ToolcellError as error:
        return str(error)
    return None
