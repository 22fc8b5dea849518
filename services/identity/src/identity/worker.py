"""identity's processes beside the web: `python -m identity.worker relay` and `… scheduler`."""

from functools import partial

from chassis import db
from chassis.config import ServiceConfig
from chassis.keyuse import KeyUses
from chassis.outbox import Outbox
from chassis.outbox.relay import Relay, Routes
from chassis.queues import Publisher
from chassis.worker.main import Job, Prepared, main
from chassis.worker.periodic import PeriodicTask, run_tasks
from identity import store, usecases
from identity.app import dependencies
from identity.config import WorkerConfig
from identity.model import EVENT_TYPES
from identity.usecases import login

# Nobody consumes identity's feed: callers are read at every request (docs/decisions/0003).
ROUTES: Routes = {}
DELETIONS_EVERY_S = 10.0
KEY_USES_EVERY_S = 10.0
RETIREMENT_EVERY_S = 60.0
EXPIRED_LOGINS_EVERY_S = 600.0


def relay(config: ServiceConfig, name: str) -> Prepared:
    engine = db.engine(config.database_url, pool_size=config.database_pool_size, name=name)
    outbox = Outbox(engine, store.SCHEMA, event_types=EVENT_TYPES, attempt_limit=config.outbox_attempt_limit)
    return Prepared(Relay(outbox, Publisher(config.queues), ROUTES, keep_days=config.outbox_keep_days).run)


def scheduler(config: WorkerConfig, name: str) -> Prepared:
    return Prepared(partial(run_tasks, name, tasks(dependencies(config, name), KeyUses(config.redis_url))))


def tasks(deps: usecases.Deps, uses: KeyUses) -> tuple[PeriodicTask, ...]:
    return (
        PeriodicTask("finish_deletions", DELETIONS_EVERY_S, lambda: usecases.finish_deletions(deps)),
        PeriodicTask("record_key_uses", KEY_USES_EVERY_S, lambda: usecases.record_key_uses(deps, uses.collect())),
        PeriodicTask("retire_signing_keys", RETIREMENT_EVERY_S, lambda: usecases.retire_signing_keys(deps)),
        PeriodicTask("remove_expired_logins", EXPIRED_LOGINS_EVERY_S, lambda: login.remove_expired_logins(deps)),
    )


JOBS = {"relay": Job(ServiceConfig, relay), "scheduler": Job(WorkerConfig, scheduler)}

if __name__ == "__main__":
    main("identity", JOBS)
