"""Limits of what an account may lose in a day."""

from chassis import logs
from chassis.outbox import Event
from intents import store
from intents.model.daily_loss import DayEquity, NewBalance
from intents.model.events import DAILY_LOSS_BREACHED
from intents.usecases.deps import Deps

log = logs.get(__name__)

JUDGED_AT_ONCE = 500


def judge_daily_losses(deps: Deps) -> bool:
    """Keep what accounts were worth when their day began, and publish who lost too much, once a day.

    True if there may be more to judge.
    """
    with deps.engine.begin() as tx:
        balances = store.new_balances(tx, JUDGED_AT_ONCE)
        judged = [(balance, balance.judged()) for balance in balances]
        store.save_day_equities(tx, [after for _, after in judged])
        events = [_breached(balance, after) for balance, after in judged if balance.begins_breach(after)]
        for event in events:
            deps.outbox.append(tx, event)
    if events:
        deps.outbox.notifier.notify()
    return len(balances) == JUDGED_AT_ONCE


def _breached(balance: NewBalance, after: DayEquity) -> Event:
    log.warning("daily_loss_breached", account_id=str(balance.account_id))
    payload = {
        "organization_id": str(balance.organization_id),
        "account_id": str(balance.account_id),
        "day": after.day.isoformat(),
        "loss": f"{after.equity - balance.equity:f}",
        "max_daily_loss": f"{balance.max_daily_loss:f}",
    }
    return Event(DAILY_LOSS_BREACHED, payload, ordering_key=str(balance.account_id))
