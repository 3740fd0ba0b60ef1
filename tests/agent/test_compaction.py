"""Which messages stay when a conversation is compacted: BEHAVIOURS 358, TR-06, rule 8.3."""

from hypothesis import given
from hypothesis import strategies as st

from toolcell.agent import compaction
from toolcell.agent.compaction import Origin, Room, units_of
from toolcell.agent.conversation import with_pairs
from toolcell.agent.token_estimate import message_tokens, text_tokens
from toolcell.base.jsontext import dumps
from toolcell.protocol.messages import Message, Reasoning, ToolCall


def kept(messages, sizes, room, origin=Origin.OWN):
    return compaction.kept(messages, sizes, room, [origin] * len(messages))


def waiting_units(messages, units, origin=Origin.OWN):
    return compaction.waiting_units(messages, units, [origin] * len(messages))


def user(text="do it"):
    return Message(role="user", text=text)


def model(*calls, text=""):
    return Message(role="assistant", text=text, tool_calls=calls)


def answer(call_id, text):
    return Message(role="tool", text=text, tool_call_id=call_id)


def waiting(cell):
    return dumps({"status": "waiting", "runId": cell, "reason": "pending_tools"})


def over(status):
    return dumps({"status": status, "value": 1, "telemetry": {}})


def began(call_id, cell):
    """Return a unit that starts a cell which waits."""
    return [model(ToolCall(call_id, "exec", '{"code":"…"}')), answer(call_id, waiting(cell))]


def waited(call_id, cell, text):
    call = ToolCall(call_id, "wait", dumps({"runId": cell}))
    return [model(call), answer(call_id, text)]


@st.composite
def conversations(draw):
    """Turns of a user, each with replies that call 0 to 3 tools; some cells wait, some end."""
    messages, open_cells, number = [], [], 0
    for _ in range(draw(st.integers(1, 6))):
        messages.append(user("u" * draw(st.integers(0, 400))))
        for _ in range(draw(st.integers(0, 5))):
            number += 1
            kind = draw(st.sampled_from(["plain", "exec", "wait", "still", "cut"]))
            size = draw(st.integers(0, 800))
            if kind == "exec":
                messages += began(f"c{number}", f"cm_{number}")
                open_cells.append(f"cm_{number}")
            elif kind in {"wait", "still"} and open_cells:
                cell = draw(st.sampled_from(open_cells))
                text = waiting(cell)
                if kind == "wait":
                    open_cells.remove(cell)
                    text = over(draw(st.sampled_from(["completed", "failed"])))
                messages += waited(f"c{number}", cell, text)
            else:
                calls = [ToolCall(f"c{number}.{i}", "read", "{}") for i in range(size % 4)]
                messages.append(model(*calls, text="t" * size))
                # A run that was killed leaves calls without answers.
                told = calls[:-1] if kind == "cut" else calls
                messages += [answer(call.id, "r" * size) for call in told]
    return messages, open_cells


rooms = st.builds(
    lambda keep, more: Room(keep=keep, most=keep + more), st.integers(0, 1500), st.integers(0, 3000)
)


def sizes_of(messages):
    return [message_tokens(message) for message in messages]


@given(conversations(), rooms)
def test_pairs_are_never_split_and_order_is_kept(made, room):
    """BEHAVIOURS 358: a call stays with all its answers, or goes with all of them."""
    messages, _ = made
    stays = kept(messages, sizes_of(messages), room)
    assert list(stays) == sorted(set(stays))
    for unit in units_of(messages):
        inside = [index in stays for index in range(unit.start, unit.end)]
        assert all(inside) or not any(inside)
    left = [messages[index] for index in stays]
    assert all(message in with_pairs(messages) for message in with_pairs(left))


@given(conversations(), rooms)
def test_what_stays_begins_with_a_user_and_holds_the_users_last_words(made, room):
    """TR-06: no turn is made up so that a wire takes the conversation."""
    messages, _ = made
    left = [messages[index] for index in kept(messages, sizes_of(messages), room)]
    assert left[0].role == "user"
    last = max(index for index, message in enumerate(messages) if message.role == "user")
    assert messages[last] in left


@given(conversations())
def test_cells_that_still_wait_stay_with_the_turn_that_began_them(made):
    """BEHAVIOURS 358: `exec` of every open cell, however old, and none of the closed ones."""
    messages, open_cells = made
    stays = kept(messages, sizes_of(messages), Room(keep=0, most=10**6))
    left = [messages[index] for index in stays]
    for cell in open_cells:
        assert any(m.role == "tool" and cell in m.text for m in left)
    units = units_of(messages)
    for index in waiting_units(messages, units):
        assert set(range(units[index].start, units[index].end)) <= set(stays)
        assert units[units[index].head].start in stays


@given(conversations(), rooms)
def test_it_fits_where_the_last_words_of_the_user_do(made, room):
    messages, _ = made
    sizes = sizes_of(messages)
    used = sum(sizes[index] for index in kept(messages, sizes, room))
    last = max(index for index, message in enumerate(messages) if message.role == "user")
    assert used <= max(room.most, sizes[last])


@given(conversations(), rooms)
def test_compacting_what_stayed_changes_nothing(made, room):
    messages, _ = made
    left = [messages[index] for index in kept(messages, sizes_of(messages), room)]
    again = kept(left, sizes_of(left), room)
    assert [left[index] for index in again] == left


@given(conversations())
def test_all_of_it_stays_where_there_is_room(made):
    messages, _ = made
    stays = kept(messages, sizes_of(messages), Room(keep=10**6, most=10**6))
    assert stays == tuple(range(len(messages)))


def test_of_a_cell_that_is_polled_the_beginning_and_the_last_look_stay():
    polls = [m for n in range(30) for m in waited(f"w{n}", "cm_1", waiting("cm_1"))]
    messages = [user(), *began("c1", "cm_1"), *polls, user("and?")]
    stays = kept(messages, sizes_of(messages), Room(keep=0, most=10**6))
    assert stays == (0, 1, 2, 61, 62, 63)


SAFE = dumps({"status": "waiting", "runId": "cm_2", "reason": "yield", "replaySafe": True})


def test_what_waits_for_nobody_does_not_stay():
    """rule 3.7: a cell is resumed within its own run; one of a run that is over is history."""
    restart_safe = [model(ToolCall("c2", "exec", "{}")), answer("c2", SAFE)]
    looked = waited("w1", "cm_2", SAFE)
    messages = [user(), *began("c1", "cm_1"), *restart_safe, *looked, user("and?")]
    units = units_of(messages)
    assert waiting_units(messages, units, Origin.OWN) == (2, 3, 1)
    # A turn that was cut off may be rebuilt when its cell was restart-safe (rule 3.13).
    assert waiting_units(messages, units, Origin.CUT_OFF) == (2, 3)
    assert waiting_units(messages, units, Origin.OVER) == ()
    none = Room(keep=0, most=10**6)
    assert kept(messages, sizes_of(messages), none, Origin.OVER) == (7,)
    assert kept(messages, sizes_of(messages), none, Origin.CUT_OFF) == (0, 3, 4, 5, 6, 7)


def test_each_message_counts_for_the_run_it_is_of():
    messages = [user(), *began("c1", "cm_1"), user(), *began("c2", "cm_2"), user("and?")]
    origins = [Origin.OVER] * 3 + [Origin.OWN] * 4
    units = units_of(messages)
    assert compaction.waiting_units(messages, units, origins) == (3,)


def test_no_status_but_the_three_is_one():
    """A cell whose envelope says `replay-safe` for a status pins nothing."""
    odd = dumps({"status": "replay-safe", "runId": "cm_1", "replaySafe": True})
    messages = [user(), model(ToolCall("c", "exec", "{}")), answer("c", odd)]
    assert waiting_units(messages, units_of(messages), Origin.CUT_OFF) == ()


def test_a_wait_refused_beside_another_leaves_the_cell_open():
    """rule 3.7: the second of two `wait` at the same time is refused; the cell waits on."""
    both = [ToolCall(f"w{n}", "wait", dumps({"runId": "cm_1"})) for n in (1, 2)]
    looked = [model(*both), answer("w1", waiting("cm_1")), answer("w2", over("failed"))]
    messages = [user(), *began("c1", "cm_1"), *looked, user("and?")]
    units = units_of(messages)
    assert waiting_units(messages, units) == (1, 2)


def test_other_tools_cannot_pretend_to_be_a_cell():
    messages = [
        user(),
        model(ToolCall("a", "fetch", "{}")),
        answer("a", waiting("cm_9")),
        model(ToolCall("b", "exec", "{}")),
        answer("b", "not JSON"),
        model(ToolCall("c", "exec", "{}")),
        answer("c", '["waiting"]'),
    ]
    assert waiting_units(messages, units_of(messages)) == ()


def test_the_wrapped_output_of_a_cell_does_not_hide_that_it_waits():
    """rule 4.9: text from outside follows the envelope in a block of its own."""
    text = waiting("cm_1") + '\n<<<EXTERNAL_UNTRUSTED_CONTENT>>>\n{"status":"completed"}'
    messages = [user(), model(ToolCall("c", "exec", "{}")), answer("c", text)]
    assert waiting_units(messages, units_of(messages)) == (1,)


def test_tokens_are_guessed_by_script():
    assert text_tokens("") == 0
    assert text_tokens("word" * 100) == 100
    assert text_tokens("你好世界" * 25) == 100
    assert text_tokens("привет" * 100) == 300
    assert text_tokens("\ud800" * 10) == 10
    bare = message_tokens(model(text="x" * 40))
    thought = Reasoning("anthropic", ({"thinking": "y" * 400},))
    assert message_tokens(Message(role="assistant", text="x" * 40, reasoning=thought)) > bare + 90
