"""The JSON of answers: action records, batches, verification, statistics."""

from marshmallow import Schema, fields

from chassis.fields import Choice, Flag, Identifier, Instant, Text, Whole
from intents import model
from intents.model import groups
from intents.schemas_commands import SPEC_OR_NULL


class ActionCommand(Schema):
    type = Choice(tuple(map(str, model.CommandType)), required=True)
    payload = fields.Dict(required=True)


class Actor(Schema):
    type = Choice(("api_key", "user", "service_account", "system"), required=True)
    id = Text(longest=255, required=True)


class ControlCheck(Schema):
    control = Text(longest=64, required=True)
    version = Whole(least=0, most=2**63 - 1, required=True)
    outcome = Text(longest=32, required=True)


class ActionControls(Schema):
    decision = Choice(("ALLOWED",), required=True)
    checks = fields.List(fields.Nested(ControlCheck), required=True)
    facts = fields.Dict()


class IntentState(Schema):
    status = Choice(tuple(model.Status), required=True)
    filled_quantity = Text(longest=64, required=True)
    leaves_quantity = Text(longest=64, required=True)
    average_fill_price = Text(longest=64, required=True, allow_none=True)
    broker_order_id = Text(longest=255, required=True, allow_none=True)
    reason_code = Text(longest=64, required=True, allow_none=True)
    outcome = Choice(("unknown",), required=True, allow_none=True)
    updated_at = Instant(required=True)
    group_id = Identifier(
        required=True, allow_none=True, metadata={"description": "The order group of which this intent is a leg."}
    )
    group_role = Choice(groups.ROLES, required=True, allow_none=True)


class Action(Schema):
    """What `model.record` makes, for the document."""

    id = Identifier(required=True)
    sequence = Whole(least=0, most=2**63 - 1, required=True)
    intent_id = Identifier(required=True)
    account_id = Identifier(required=True)
    organization_id = Identifier(required=True)
    environment = Choice(("paper", "live"), required=True)
    command = fields.Nested(ActionCommand, required=True)
    symbol = Text(longest=32, required=True)
    order_side = Choice(model.ORDER_SIDES, required=True)
    spec = fields.Raw(required=True, allow_none=True, metadata=SPEC_OR_NULL)
    route_strategy = Choice(model.ROUTE_STRATEGIES, required=True)
    ref_intent_id = Identifier(required=True, allow_none=True)
    actor = fields.Nested(Actor, required=True)
    reason = Text(longest=64, required=True, allow_none=True)
    controls = fields.Nested(ActionControls, required=True)
    created_at = Instant(required=True)
    state = fields.Nested(IntentState, required=True)
    previous_hash = Text(shortest=0, longest=64, required=True)
    hash = Text(shortest=0, longest=64, required=True)


class ActionPage(Schema):
    data = fields.List(fields.Nested(Action), required=True)
    next_cursor = Text(longest=1024, required=True, allow_none=True)


class BatchResult(Schema):
    status = Whole(least=200, most=599, required=True)
    action = fields.Nested(Action)
    problem = fields.Raw(metadata={"oneOf": [{"$ref": "#/components/schemas/Problem"}]})


class BatchResults(Schema):
    results = fields.List(fields.Nested(BatchResult), required=True)


class BrokenLink(Schema):
    sequence = Whole(least=0, most=2**63 - 1, required=True)
    action_id = Text(longest=64, required=True, allow_none=True)
    reason = Text(longest=64, required=True)


class Verification(Schema):
    account_id = Identifier(required=True)
    valid = Flag(required=True)
    checked = Whole(least=0, most=2**63 - 1, required=True)
    last_sequence = Whole(least=0, most=2**63 - 1, required=True)
    signed_sequence = Whole(least=1, most=2**63 - 1, required=True, allow_none=True)
    log_epoch = Identifier(required=True)
    first_broken = fields.Nested(BrokenLink, required=True, allow_none=True)
    next_cursor = Text(longest=1024, required=True, allow_none=True)


class SymbolCount(Schema):
    symbol = Text(longest=32, required=True)
    total_actions = Whole(least=0, most=2**63 - 1, required=True)


class TagCount(Schema):
    tag = Text(longest=model.TAG_LONGEST, required=True)
    total_intents = Whole(least=0, most=2**63 - 1, required=True)


class Latencies(Schema):
    submit_p50 = fields.Float(required=True, allow_none=True)
    submit_p95 = fields.Float(required=True, allow_none=True)
    fill_p50 = fields.Float(required=True, allow_none=True)
    fill_p95 = fields.Float(required=True, allow_none=True)


class Statistics(Schema):
    account_id = Identifier(required=True)
    time_window = Choice(tuple(model.WINDOWS), required=True)
    from_ = Instant(required=True, allow_none=True, data_key="from", attribute="since")
    to = Instant(required=True)
    total_actions = Whole(least=0, most=2**63 - 1, required=True)
    total_intents = Whole(least=0, most=2**63 - 1, required=True)
    by_type = fields.Dict(required=True)
    by_status = fields.Dict(required=True)
    by_symbol = fields.List(fields.Nested(SymbolCount), required=True)
    fill_rate = fields.Float(required=True, allow_none=True)
    refusals = fields.Dict(required=True)
    latency_ms = fields.Nested(Latencies, required=True)
    by_tag = fields.List(fields.Nested(TagCount), required=True)
