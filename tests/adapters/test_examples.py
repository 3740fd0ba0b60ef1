"""The examples, as a user runs them: each a process of its own, against a scripted model.

SDKs that toolcell does not need are installed once, into an environment in pytest's cache.
"""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import anyio
import pytest

from toolcell.config.env import variable
from toolcell.providers.scripted import tool_call
from toolcell.testing.openai_server import openai_server
from toolcell.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "adapters"
PACKAGES = (
    *("fastmcp>=4", "langchain>=1", "langchain-openai>=1", "openai-agents>=0.20"),
    "pydantic-ai-slim[openai]>=2",
)
SUM = "return (await price({item: 'apple'})) + (await price({item: 'pear'}))"
CELL = ([tool_call("exec", {"code": SUM})], "1.25 in all")
SEARCH = (
    [tool_call("tool_search", {"query": "price"})],
    [tool_call("tool_call", {"id": "price", "args": {"item": "pear"}})],
    "0.75 for a pear",
)


@pytest.fixture(scope="session")
def optional_python(request):
    """Python with the optional SDKs, on top of what this environment has."""
    folder = Path(request.config.cache.mkdir("adapter-sdks"))
    python = folder / "venv" / "bin" / "python"
    done = folder / "installed"
    wanted = "\n".join((sys.version, *PACKAGES))
    if not done.exists() or done.read_text() != wanted:
        venv.create(folder / "venv", clear=True)
        (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
        (site / "below.pth").write_text(sysconfig.get_path("purelib") + "\n")
        subprocess.run(
            [sys.executable, "-m", "pip", "--python", python, "install", "-q", *PACKAGES],
            check=True,
            capture_output=True,
            timeout=600,
        )
        done.write_text(wanted)
    return str(python)


async def run(python, name, script):
    async with openai_server(script) as server:
        environment = {
            "PATH": variable("PATH") or "",
            "PYTHONPATH": str(ROOT / "src"),
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_API_KEY": "k",
            "ANTHROPIC_BASE_URL": server.root_url,
            "ANTHROPIC_API_KEY": "k",
        }
        command = [python, str(EXAMPLES / f"{name}.py")]
        with anyio.fail_after(90):
            done = await anyio.run_process(command, env=environment, check=False)
        assert done.returncode == 0, done.stderr.decode()[-3000:]
        return done.stdout.decode().strip()


@pytest.mark.parametrize(
    ("name", "steps"), [("openai_sdk", CELL), ("anthropic_sdk", SEARCH)], ids=lambda x: str(x)[:20]
)
async def test_the_examples_of_the_sdks_that_are_here_run(name, steps):
    """The first and the second way in: an SDK loop of one's own."""
    script = ScriptedModel(list(steps))
    assert await run(sys.executable, name, script) == steps[-1]


@pytest.mark.network
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "steps"),
    [("langgraph_agent", SEARCH), ("pydantic_ai_agent", CELL), ("openai_agents_sdk", CELL)],
    ids=lambda x: str(x)[:20],
)
async def test_the_examples_of_agent_frameworks_run(optional_python, name, steps):
    """Tools of a session in somebody else's loop: the model gets the real results back."""
    script = ScriptedModel(list(steps))
    assert await run(optional_python, name, script) == steps[-1]
    results = [m["content"] for m in script.bodies[-1]["messages"] if m["role"] == "tool"]
    assert "1.25" in str(results) or "0.75" in str(results)


@pytest.mark.network
@pytest.mark.timeout(900)
async def test_the_example_of_fastmcp_runs(optional_python):
    """Clients of the server search and call."""
    found, bought = (await run(optional_python, "fastmcp_server", ScriptedModel([]))).splitlines()
    assert "openclaw:core:price" in found
    assert "0.75" in bought
