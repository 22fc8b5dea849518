"""The audit log of an organization, for its admins and for operators."""

import json
from collections.abc import Iterator, Sequence
from typing import cast
from uuid import UUID

from flask import Blueprint, Response, current_app, jsonify, request
from flask.typing import ResponseReturnValue

from chassis import cursors, ratelimit
from chassis.access import allow, charge, page_size
from chassis.openapi import describe
from chassis.principals import Role, service_account, user
from identity import audit, schemas_audit, usecases
from identity.routes.common import PAGE_QUERY, caller, deps
from identity.routes.organizations import READ

bp = Blueprint("audit_entries", __name__)
READERS = (user(Role.ADMIN), service_account(READ, organization=False))
_EXAMPLE = '{"organization_id":"…","sequence":1,"type":"api_key.created","target":"…",…}\n'
_NOTE = "JSON lines: one entry on each, oldest first, all that there are when it is requested."


@bp.get("/v1/organizations/<uuid:organization_id>/audit-entries")
@allow(*READERS)
@describe(
    "List the changes of an organization, its people, keys and entitlements, newest first",
    answers={200: schemas_audit.AuditEntryPage},
    errors=(404,),
    query={**schemas_audit.FILTERS, **PAGE_QUERY},
    schemas=schemas_audit.AUDIT_VALUE,
    codes=("bad_filter",),
)
def list_audit_entries(organization_id: UUID) -> ResponseReturnValue:
    wanted = schemas_audit.entry_filter(request.args)
    about = ("audit-entries", str(organization_id), *(request.args.get(name, "") for name in schemas_audit.FILTERS))
    codec, limit = cast("cursors.Cursors", current_app.extensions["cursors"]), page_size(request.args.get("limit"))
    [before] = codec.read(about, request.args.get("next_cursor")) or [None]
    found = usecases.list_audit_entries(deps(), caller(), organization_id, wanted, before, limit + 1)
    shown = found[:limit]
    cursor = codec.write(about, [shown[-1].sequence]) if len(found) > limit else None
    return jsonify(schemas_audit.AuditEntryPage().dump({"data": shown, "next_cursor": cursor}))


@bp.get("/v1/organizations/<uuid:organization_id>/audit-entries/export")
@allow(*READERS)
@describe(
    "The audit log as a file",
    answers={200: {"application/jsonl": {"schema": {"type": "string"}, "example": _EXAMPLE}}},
    errors=(404,),
    query=schemas_audit.FILTERS,
    note=_NOTE,
    codes=("bad_filter",),
)
def export_audit_entries(organization_id: UUID) -> ResponseReturnValue:
    wanted = schemas_audit.entry_filter(request.args)
    parts = usecases.export_audit_entries(deps(), caller(), organization_id, wanted, _charge_rows)
    named = {"Content-Disposition": f'attachment; filename="audit-log-{organization_id}.jsonl"'}
    return Response(_lines(parts), 200, named, content_type="application/jsonl")


def _charge_rows(count: int) -> None:
    charge(ratelimit.units_of_rows(count))


def _lines(parts: Iterator[Sequence[audit.Entry]]) -> Iterator[bytes]:
    schema = schemas_audit.AuditEntry()
    for entries in parts:
        yield b"".join(json.dumps(schema.dump(entry)).encode() + b"\n" for entry in entries)
