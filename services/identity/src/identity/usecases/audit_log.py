"""The audit log of an organization, read and exported. It is written by `Deps.record_change`, with each change."""

from collections.abc import Callable, Iterator, Sequence
from uuid import UUID

from chassis import db, tenancy
from chassis.principals import Principal
from identity import audit, model
from identity.store import audit_entries as store
from identity.store import organizations
from identity.usecases.deps import Deps, see_organization

ENTRIES_AT_ONCE = 500


def list_audit_entries(
    deps: Deps, principal: Principal, organization_id: UUID, wanted: audit.Filter, before: int | None, limit: int
) -> list[audit.Entry]:
    """Newest first."""
    see_organization(principal, organization_id)
    with db.reading(deps.engine) as tx:
        if organizations.find(tx, organization_id) is None:
            raise model.NotFound
        return store.newest(tx, organization_id, wanted, before, limit)


def export_audit_entries(
    deps: Deps,
    principal: Principal,
    organization_id: UUID,
    wanted: audit.Filter,
    charge_rows: Callable[[int], None],
) -> Iterator[Sequence[audit.Entry]]:
    """All there are now, oldest first, in parts. Each is read in a transaction of its own: no entry ever changes."""
    see_organization(principal, organization_id)
    with db.reading(deps.engine) as tx:
        if organizations.find(tx, organization_id) is None:
            raise model.NotFound
        last = store.last_sequence(tx, organization_id)
    charge_rows(last)
    return _parts(deps, organization_id, wanted, last)


def _parts(deps: Deps, organization_id: UUID, wanted: audit.Filter, last: int) -> Iterator[Sequence[audit.Entry]]:
    after = 0
    while after < last:
        with tenancy.serving([organization_id]), db.reading(deps.engine) as tx:
            entries = store.between(tx, organization_id, wanted, after, last, ENTRIES_AT_ONCE)
        yield entries
        after = entries[-1].sequence if len(entries) == ENTRIES_AT_ONCE else last
