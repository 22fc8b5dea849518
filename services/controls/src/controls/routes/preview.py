"""Whether a command would pass the controls."""

from uuid import UUID

from flask import g, jsonify
from flask.typing import ResponseReturnValue

from controls import previews, schemas
from controls.routes.common import ACCOUNT, body, bp, deps, describe, readers


@bp.post(f"{ACCOUNT}/preview")
@readers
@describe(
    "Say whether a command would pass the controls, now or at a given time, and why not",
    body=schemas.PreviewRequest,
    answers={200: schemas.PreviewAnswer},
    errors=(404, 413, 415, 422),
)
def preview(account_id: UUID) -> ResponseReturnValue:
    wanted = body(schemas.PreviewRequest, account_id)
    return jsonify(schemas.preview_answer(account_id, *previews.preview(deps(), g.principal, account_id, wanted)))
