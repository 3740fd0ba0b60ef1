"""What model calls cost: reported by the endpoint, or by the prices of the config."""

import pytest

from tests.gateway.kit import config, gateway
from toolcell.app.settings import endpoints_of
from toolcell.config.parse import parse_config
from toolcell.errors import ConfigError
from toolcell.protocol.messages import Message, ModelReply, Usage
from toolcell.providers.anthropic_replies import read_usage as read_anthropic
from toolcell.providers.openai_replies import read_usage as read_chat
from toolcell.providers.prices import Price
from toolcell.providers.scripted import ScriptedProvider

pytestmark = pytest.mark.anyio

COST = {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}
USAGE = Usage(
    input_tokens=1_000_000, output_tokens=100_000, cached_tokens=400_000, written_tokens=200_000
)


def test_each_kind_of_token_has_its_price():
    price = Price(input=3, output=15, cache_read=0.3, cache_write=3.75)
    assert price.of(USAGE) == pytest.approx(0.4 * 3 + 0.4 * 0.3 + 0.2 * 3.75 + 0.1 * 15)
    assert Price(input=3, output=15).of(USAGE) == pytest.approx(3 + 1.5)
    lying = Usage(input_tokens=1, cached_tokens=1_000_000)
    assert Price(input=1, output=1, cache_read=0).of(lying) == 0


def test_costs_add_up_as_far_as_they_are_known():
    known, unknown = Usage(input_tokens=1, cost=0.5), Usage(output_tokens=2)
    assert known + known + unknown == Usage(input_tokens=2, output_tokens=2, cost=1.0)
    assert (unknown + unknown).cost is None


def test_an_endpoint_may_say_what_a_call_cost():
    assert read_chat({"prompt_tokens": 1, "cost": 0.25}).cost == 0.25
    for bad in (-1, "1", True, None, float("nan"), float("inf"), [1]):
        assert read_chat({"prompt_tokens": 1, "cost": bad}).cost is None


def test_what_a_cache_takes_is_counted_on_the_anthropic_wire():
    got = read_anthropic({"input_tokens": 1, "cache_creation_input_tokens": 5, "output_tokens": 2})
    assert (got.input_tokens, got.written_tokens) == (6, 5)


def test_prices_come_from_the_models_row():
    rows = [{"id": "m", "cost": COST}, {"id": "free"}]
    made = parse_config({"models": {"providers": {"p": {"models": rows}}}})
    assert endpoints_of(made)["p"].prices == {
        "m": Price(input=3, output=15, cache_read=0.3, cache_write=3.75)
    }
    row = {"id": "m", "cost": {**COST, "input": -1}}
    wrong = {"models": {"providers": {"p": {"models": [row]}}}}
    with pytest.raises(ConfigError, match="cost.input"):
        parse_config(wrong)


def reply(usage):
    return ModelReply(message=Message(role="assistant", text="ok"), finish="stop", usage=usage)


async def test_a_cost_is_told_by_the_gateway_the_record_and_the_metrics(tmp_path):
    """It is that of the config, unless the endpoint says what it took."""
    models = {"providers": {"scripted": {"models": [{"id": "m", "cost": COST}]}}}
    where = config(tmp_path, models=models)
    steps = [reply(USAGE), reply(Usage(input_tokens=5, cost=0.125))]
    async with gateway(where, ScriptedProvider(steps)) as g:
        costs = []
        for _ in steps:
            run = (await g.post("/api/runs", {"prompt": "go"})).json()["id"]
            done = (await g.get(f"/api/runs/{run}", params={"wait": 10})).json()
            costs.append(done["usage"]["cost"])
        assert costs == [pytest.approx(3.57), 0.125]
        events = [
            each.data() for each in await g.events(done["sessionId"]) if each.type == "model_called"
        ]
        assert events[0]["usage"]["cost"] == 0.125
        text = (await g.get("/metrics")).text
    (line,) = [x for x in text.splitlines() if x.startswith("toolcell_model_cost_dollars_total")]
    assert float(line.split()[1]) == pytest.approx(3.695)


async def test_without_prices_nothing_is_said_of_costs(tmp_path):
    async with gateway(config(tmp_path), ScriptedProvider([reply(USAGE)])) as g:
        run = (await g.post("/api/runs", {"prompt": "go"})).json()["id"]
        done = (await g.get(f"/api/runs/{run}", params={"wait": 10})).json()
        assert done["usage"] == {"input": 1_000_000, "output": 100_000}
        assert "\ntoolcell_model_cost_dollars_total" not in (await g.get("/metrics")).text
