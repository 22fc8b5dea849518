import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EventType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVENT_TYPE_UNSPECIFIED: _ClassVar[EventType]
    EVENT_TYPE_BROKER_ORDER: _ClassVar[EventType]
    EVENT_TYPE_BROKER_POSITION: _ClassVar[EventType]
    EVENT_TYPE_BROKER_TRADE: _ClassVar[EventType]
    EVENT_TYPE_INTENT_ACTION: _ClassVar[EventType]
    EVENT_TYPE_CONTROL: _ClassVar[EventType]
    EVENT_TYPE_ACCOUNT: _ClassVar[EventType]
    EVENT_TYPE_REFUSAL: _ClassVar[EventType]
EVENT_TYPE_UNSPECIFIED: EventType
EVENT_TYPE_BROKER_ORDER: EventType
EVENT_TYPE_BROKER_POSITION: EventType
EVENT_TYPE_BROKER_TRADE: EventType
EVENT_TYPE_INTENT_ACTION: EventType
EVENT_TYPE_CONTROL: EventType
EVENT_TYPE_ACCOUNT: EventType
EVENT_TYPE_REFUSAL: EventType

class SubscribeEventsRequest(_message.Message):
    __slots__ = ("trading_account_id", "subscriptions", "resume_after_sequence", "resume_epoch")
    TRADING_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTIONS_FIELD_NUMBER: _ClassVar[int]
    RESUME_AFTER_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    RESUME_EPOCH_FIELD_NUMBER: _ClassVar[int]
    trading_account_id: str
    subscriptions: _containers.RepeatedScalarFieldContainer[EventType]
    resume_after_sequence: int
    resume_epoch: str
    def __init__(self, trading_account_id: _Optional[str] = ..., subscriptions: _Optional[_Iterable[_Union[EventType, str]]] = ..., resume_after_sequence: _Optional[int] = ..., resume_epoch: _Optional[str] = ...) -> None: ...

class TradingEvent(_message.Message):
    __slots__ = ("event_id", "sequence", "trading_account_id", "type", "occurred_at", "traceparent", "epoch", "previous_hash", "hash", "broker_order", "broker_position", "broker_trade", "intent_action", "control", "account", "refusal", "heartbeat", "replay_complete")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    TRADING_ACCOUNT_ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    OCCURRED_AT_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_HASH_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    BROKER_ORDER_FIELD_NUMBER: _ClassVar[int]
    BROKER_POSITION_FIELD_NUMBER: _ClassVar[int]
    BROKER_TRADE_FIELD_NUMBER: _ClassVar[int]
    INTENT_ACTION_FIELD_NUMBER: _ClassVar[int]
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    REPLAY_COMPLETE_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    sequence: int
    trading_account_id: str
    type: EventType
    occurred_at: _timestamp_pb2.Timestamp
    traceparent: str
    epoch: str
    previous_hash: str
    hash: str
    broker_order: BrokerOrder
    broker_position: BrokerPosition
    broker_trade: BrokerTrade
    intent_action: IntentAction
    control: Control
    account: Account
    refusal: Refusal
    heartbeat: Heartbeat
    replay_complete: ReplayComplete
    def __init__(self, event_id: _Optional[str] = ..., sequence: _Optional[int] = ..., trading_account_id: _Optional[str] = ..., type: _Optional[_Union[EventType, str]] = ..., occurred_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., traceparent: _Optional[str] = ..., epoch: _Optional[str] = ..., previous_hash: _Optional[str] = ..., hash: _Optional[str] = ..., broker_order: _Optional[_Union[BrokerOrder, _Mapping]] = ..., broker_position: _Optional[_Union[BrokerPosition, _Mapping]] = ..., broker_trade: _Optional[_Union[BrokerTrade, _Mapping]] = ..., intent_action: _Optional[_Union[IntentAction, _Mapping]] = ..., control: _Optional[_Union[Control, _Mapping]] = ..., account: _Optional[_Union[Account, _Mapping]] = ..., refusal: _Optional[_Union[Refusal, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ..., replay_complete: _Optional[_Union[ReplayComplete, _Mapping]] = ...) -> None: ...

class BrokerOrder(_message.Message):
    __slots__ = ("intent_id", "broker_order_id", "symbol", "order_side", "order_kind", "status", "quantity", "filled_quantity", "leaves_quantity", "average_fill_price", "limit_price", "stop_price", "reason_code", "reason", "execution_id", "last_quantity", "last_price", "outcome", "reasons", "trail_amount", "trail_percent", "notional")
    INTENT_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_ORDER_ID_FIELD_NUMBER: _ClassVar[int]
    SYMBOL_FIELD_NUMBER: _ClassVar[int]
    ORDER_SIDE_FIELD_NUMBER: _ClassVar[int]
    ORDER_KIND_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    QUANTITY_FIELD_NUMBER: _ClassVar[int]
    FILLED_QUANTITY_FIELD_NUMBER: _ClassVar[int]
    LEAVES_QUANTITY_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_FILL_PRICE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_PRICE_FIELD_NUMBER: _ClassVar[int]
    STOP_PRICE_FIELD_NUMBER: _ClassVar[int]
    REASON_CODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_QUANTITY_FIELD_NUMBER: _ClassVar[int]
    LAST_PRICE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    TRAIL_AMOUNT_FIELD_NUMBER: _ClassVar[int]
    TRAIL_PERCENT_FIELD_NUMBER: _ClassVar[int]
    NOTIONAL_FIELD_NUMBER: _ClassVar[int]
    intent_id: str
    broker_order_id: str
    symbol: str
    order_side: str
    order_kind: str
    status: str
    quantity: str
    filled_quantity: str
    leaves_quantity: str
    average_fill_price: str
    limit_price: str
    stop_price: str
    reason_code: str
    reason: str
    execution_id: str
    last_quantity: str
    last_price: str
    outcome: str
    reasons: _containers.RepeatedCompositeFieldContainer[ControlReason]
    trail_amount: str
    trail_percent: str
    notional: str
    def __init__(self, intent_id: _Optional[str] = ..., broker_order_id: _Optional[str] = ..., symbol: _Optional[str] = ..., order_side: _Optional[str] = ..., order_kind: _Optional[str] = ..., status: _Optional[str] = ..., quantity: _Optional[str] = ..., filled_quantity: _Optional[str] = ..., leaves_quantity: _Optional[str] = ..., average_fill_price: _Optional[str] = ..., limit_price: _Optional[str] = ..., stop_price: _Optional[str] = ..., reason_code: _Optional[str] = ..., reason: _Optional[str] = ..., execution_id: _Optional[str] = ..., last_quantity: _Optional[str] = ..., last_price: _Optional[str] = ..., outcome: _Optional[str] = ..., reasons: _Optional[_Iterable[_Union[ControlReason, _Mapping]]] = ..., trail_amount: _Optional[str] = ..., trail_percent: _Optional[str] = ..., notional: _Optional[str] = ...) -> None: ...

class ControlReason(_message.Message):
    __slots__ = ("code", "control", "version", "message")
    CODE_FIELD_NUMBER: _ClassVar[int]
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    code: str
    control: str
    version: int
    message: str
    def __init__(self, code: _Optional[str] = ..., control: _Optional[str] = ..., version: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class BrokerPosition(_message.Message):
    __slots__ = ("symbol", "quantity", "last_price")
    SYMBOL_FIELD_NUMBER: _ClassVar[int]
    QUANTITY_FIELD_NUMBER: _ClassVar[int]
    LAST_PRICE_FIELD_NUMBER: _ClassVar[int]
    symbol: str
    quantity: str
    last_price: str
    def __init__(self, symbol: _Optional[str] = ..., quantity: _Optional[str] = ..., last_price: _Optional[str] = ...) -> None: ...

class BrokerTrade(_message.Message):
    __slots__ = ("intent_id", "broker_order_id", "execution_id", "symbol", "order_side", "quantity", "price")
    INTENT_ID_FIELD_NUMBER: _ClassVar[int]
    BROKER_ORDER_ID_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    SYMBOL_FIELD_NUMBER: _ClassVar[int]
    ORDER_SIDE_FIELD_NUMBER: _ClassVar[int]
    QUANTITY_FIELD_NUMBER: _ClassVar[int]
    PRICE_FIELD_NUMBER: _ClassVar[int]
    intent_id: str
    broker_order_id: str
    execution_id: str
    symbol: str
    order_side: str
    quantity: str
    price: str
    def __init__(self, intent_id: _Optional[str] = ..., broker_order_id: _Optional[str] = ..., execution_id: _Optional[str] = ..., symbol: _Optional[str] = ..., order_side: _Optional[str] = ..., quantity: _Optional[str] = ..., price: _Optional[str] = ...) -> None: ...

class IntentAction(_message.Message):
    __slots__ = ("id", "intent_id", "organization_id", "environment", "command", "symbol", "order_side", "spec", "route_strategy", "ref_intent_id", "actor", "reason", "controls", "status", "previous_hash", "hash", "client_id", "tags")
    ID_FIELD_NUMBER: _ClassVar[int]
    INTENT_ID_FIELD_NUMBER: _ClassVar[int]
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    SYMBOL_FIELD_NUMBER: _ClassVar[int]
    ORDER_SIDE_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    ROUTE_STRATEGY_FIELD_NUMBER: _ClassVar[int]
    REF_INTENT_ID_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CONTROLS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_HASH_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    id: str
    intent_id: str
    organization_id: str
    environment: str
    command: IntentCommand
    symbol: str
    order_side: str
    spec: OrderSpec
    route_strategy: str
    ref_intent_id: str
    actor: Actor
    reason: str
    controls: ControlsDecision
    status: str
    previous_hash: str
    hash: str
    client_id: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[str] = ..., intent_id: _Optional[str] = ..., organization_id: _Optional[str] = ..., environment: _Optional[str] = ..., command: _Optional[_Union[IntentCommand, _Mapping]] = ..., symbol: _Optional[str] = ..., order_side: _Optional[str] = ..., spec: _Optional[_Union[OrderSpec, _Mapping]] = ..., route_strategy: _Optional[str] = ..., ref_intent_id: _Optional[str] = ..., actor: _Optional[_Union[Actor, _Mapping]] = ..., reason: _Optional[str] = ..., controls: _Optional[_Union[ControlsDecision, _Mapping]] = ..., status: _Optional[str] = ..., previous_hash: _Optional[str] = ..., hash: _Optional[str] = ..., client_id: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ...) -> None: ...

class IntentCommand(_message.Message):
    __slots__ = ("type",)
    TYPE_FIELD_NUMBER: _ClassVar[int]
    type: str
    def __init__(self, type: _Optional[str] = ...) -> None: ...

class OrderSpec(_message.Message):
    __slots__ = ("order_kind", "quantity", "limit_price", "stop_price", "time_in_force", "trail_amount", "trail_percent", "notional")
    ORDER_KIND_FIELD_NUMBER: _ClassVar[int]
    QUANTITY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_PRICE_FIELD_NUMBER: _ClassVar[int]
    STOP_PRICE_FIELD_NUMBER: _ClassVar[int]
    TIME_IN_FORCE_FIELD_NUMBER: _ClassVar[int]
    TRAIL_AMOUNT_FIELD_NUMBER: _ClassVar[int]
    TRAIL_PERCENT_FIELD_NUMBER: _ClassVar[int]
    NOTIONAL_FIELD_NUMBER: _ClassVar[int]
    order_kind: str
    quantity: str
    limit_price: str
    stop_price: str
    time_in_force: str
    trail_amount: str
    trail_percent: str
    notional: str
    def __init__(self, order_kind: _Optional[str] = ..., quantity: _Optional[str] = ..., limit_price: _Optional[str] = ..., stop_price: _Optional[str] = ..., time_in_force: _Optional[str] = ..., trail_amount: _Optional[str] = ..., trail_percent: _Optional[str] = ..., notional: _Optional[str] = ...) -> None: ...

class Actor(_message.Message):
    __slots__ = ("type", "id")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    type: str
    id: str
    def __init__(self, type: _Optional[str] = ..., id: _Optional[str] = ...) -> None: ...

class ControlsDecision(_message.Message):
    __slots__ = ("decision", "checks")
    DECISION_FIELD_NUMBER: _ClassVar[int]
    CHECKS_FIELD_NUMBER: _ClassVar[int]
    decision: str
    checks: _containers.RepeatedCompositeFieldContainer[ControlCheck]
    def __init__(self, decision: _Optional[str] = ..., checks: _Optional[_Iterable[_Union[ControlCheck, _Mapping]]] = ...) -> None: ...

class ControlCheck(_message.Message):
    __slots__ = ("control", "version", "outcome")
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    control: str
    version: int
    outcome: str
    def __init__(self, control: _Optional[str] = ..., version: _Optional[int] = ..., outcome: _Optional[str] = ...) -> None: ...

class Control(_message.Message):
    __slots__ = ("organization_id", "control", "symbol", "version", "deleted", "actor")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    SYMBOL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    control: str
    symbol: str
    version: int
    deleted: bool
    actor: Actor
    def __init__(self, organization_id: _Optional[str] = ..., control: _Optional[str] = ..., symbol: _Optional[str] = ..., version: _Optional[int] = ..., deleted: _Optional[bool] = ..., actor: _Optional[_Union[Actor, _Mapping]] = ...) -> None: ...

class Account(_message.Message):
    __slots__ = ("organization_id", "event_type", "credential_id", "version")
    ORGANIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    organization_id: str
    event_type: str
    credential_id: str
    version: int
    def __init__(self, organization_id: _Optional[str] = ..., event_type: _Optional[str] = ..., credential_id: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class Refusal(_message.Message):
    __slots__ = ("id", "type", "symbol", "order_side", "spec", "ref_intent_id", "actor", "reasons", "request_id")
    ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    SYMBOL_FIELD_NUMBER: _ClassVar[int]
    ORDER_SIDE_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    REF_INTENT_ID_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    type: str
    symbol: str
    order_side: str
    spec: OrderSpec
    ref_intent_id: str
    actor: Actor
    reasons: _containers.RepeatedCompositeFieldContainer[RefusalReason]
    request_id: str
    def __init__(self, id: _Optional[str] = ..., type: _Optional[str] = ..., symbol: _Optional[str] = ..., order_side: _Optional[str] = ..., spec: _Optional[_Union[OrderSpec, _Mapping]] = ..., ref_intent_id: _Optional[str] = ..., actor: _Optional[_Union[Actor, _Mapping]] = ..., reasons: _Optional[_Iterable[_Union[RefusalReason, _Mapping]]] = ..., request_id: _Optional[str] = ...) -> None: ...

class RefusalReason(_message.Message):
    __slots__ = ("code", "control", "version", "message")
    CODE_FIELD_NUMBER: _ClassVar[int]
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    code: str
    control: str
    version: int
    message: str
    def __init__(self, code: _Optional[str] = ..., control: _Optional[str] = ..., version: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("latest_sequence",)
    LATEST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    latest_sequence: int
    def __init__(self, latest_sequence: _Optional[int] = ...) -> None: ...

class ReplayComplete(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
