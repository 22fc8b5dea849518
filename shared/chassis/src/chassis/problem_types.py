"""Every problem that the API answers with, by its code: when it comes, and what to do about it.

The one table of them: the API document names the codes of each operation from it, and every code has a page at
`/docs/problems/<code>`. A test compares it with docs/contract.md.
"""

from collections.abc import Mapping
from typing import NamedTuple


class ProblemType(NamedTuple):
    statuses: tuple[int, ...]
    meaning: str
    remedy: str


_AS_DOCUMENTED = "Send it as the API reference describes it."
_WAIT = "Wait as many seconds as `Retry-After` says, then send it again."

TYPES: Mapping[str, ProblemType] = {
    # 400
    "bad_request": ProblemType(
        (400,), "The request is not valid HTTP, or holds a value that cannot be stored.", _AS_DOCUMENTED
    ),
    "malformed_json": ProblemType(
        (400,),
        "The body is not strict JSON in UTF-8: a duplicate key, NaN, trailing data, nesting over 32, or simply broken.",
        "Let a JSON library write the body.",
    ),
    "unknown_query": ProblemType(
        (400,),
        "The query has a parameter that this operation does not take.",
        "Leave it out; the reference lists those it takes.",
    ),
    "repeated_query": ProblemType((400,), "A query parameter was sent twice.", "Send it once."),
    "bad_limit": ProblemType((400,), "`limit` is not a whole number from 1 to 500.", "Send one, or none for 50."),
    "bad_cursor": ProblemType(
        (400,),
        "`next_cursor` was made by another list, with other filters, or before the log was restored.",
        "Begin the list anew, and pass on each page's `next_cursor` unchanged.",
    ),
    "bad_id": ProblemType((400,), "An id in the path is not a UUID.", _AS_DOCUMENTED),
    "bad_time_window": ProblemType(
        (400,),
        "`time_window` is not one of the words.",
        "Send `last_hour`, `last_day`, `last_week`, `last_month` or `all`.",
    ),
    "bad_dry_run": ProblemType((400,), "`dry_run` is neither `true` nor `false`.", "Send one of the two."),
    "bad_time": ProblemType(
        (400,),
        "A moment in the query is not an RFC 3339 date-time, or `from` is not before `to`.",
        "Send it as `2026-01-31T09:30:00Z`.",
    ),
    "bad_cancel_open": ProblemType((400,), "`cancel_open` is neither `true` nor `false`.", "Send one of the two."),
    "bad_idempotency_key": ProblemType(
        (400,), "`Idempotency-Key` is not 1 to 255 printable ASCII characters.", "Send a random UUID."
    ),
    "bad_filter": ProblemType((400,), "A filter of the list has a value that it does not take.", _AS_DOCUMENTED),
    "two_credentials": ProblemType(
        (400,), "The request has two credentials, even if both are valid.", "Send `x-api-key` or `Authorization`, once."
    ),
    "invalid_request": ProblemType(
        (400,),
        "A request to sign in lacks a parameter or has one that is not listed.",
        "Send it as RFC 6749 and the reference say.",
    ),
    "bad_subscription": ProblemType(
        (400,),
        "The stream was requested with an event type that does not exist.",
        "Send names such as `EVENT_TYPE_BROKER_ORDER`.",
    ),
    "bad_position": ProblemType(
        (400,),
        "The position to resume after is not a sequence, or not of this form.",
        "Send the `id` of an event unchanged as `Last-Event-ID`.",
    ),
    "out_of_range": ProblemType(
        (400,),
        "The position to resume after is in the future, or of a log epoch that is over: the log was restored.",
        "Read the account anew, then open the stream without a position.",
    ),
    # 401, 403
    "unauthenticated": ProblemType(
        (401,), "There is no credential, or it is unknown, disabled or expired.", "Send a valid API key or a new token."
    ),
    "user_deleted": ProblemType((401,), "The user was deleted, which is for ever.", "Use another user."),
    "unknown_key": ProblemType((401,), "The API key is not one of ours.", "Check that the key is complete."),
    "forbidden": ProblemType(
        (403,),
        "The caller is known, but lacks the role, scope, permission, environment or organization for this.",
        "Use a credential that has it; the reference says who may call.",
    ),
    "forged_form": ProblemType(
        (403,), "The form did not come from our own page, or the page is too old.", "Load the page again."
    ),
    "organization_required": ProblemType(
        (403,),
        "A service account has to name the organization that it acts for.",
        "Send its id as `x-organization-id`.",
    ),
    "grant_too_wide": ProblemType(
        (403,),
        "Nobody gives away more than their own credential allows.",
        "Grant less, or use a credential that has it.",
    ),
    "entitlement_required": ProblemType(
        (403,),
        "The organization lacks the entitlement: Controls Premium or Trading Live.",
        "Have the operator entitle it.",
    ),
    # 404, 405, 408
    "not_found": ProblemType(
        (404,),
        "It does not exist, or belongs to another organization: both look the same.",
        "Check the id and the credential.",
    ),
    "login_elsewhere": ProblemType(
        (404,), "People do not sign in here: this installation uses an OpenID Connect provider.", "Sign in there."
    ),
    "method_not_allowed": ProblemType((405,), "The path does not have this method.", "Use one that `Allow` lists."),
    "request_timeout": ProblemType(
        (408,), "The headers did not come within 10 seconds, or the body not within 30.", "Send it again, faster."
    ),
    # 409
    "conflict": ProblemType((409,), "The state of the resource forbids it.", "Read it again and decide anew."),
    "organization_exists": ProblemType(
        (409,),
        "The provider's id already belongs to an organization.",
        "Use that organization, or another `external_id`.",
    ),
    "last_admin": ProblemType((409,), "An organization's last admin stays.", "Make another member an admin first."),
    "member_exists": ProblemType((409,), "They are a member already.", "Change their role instead."),
    "login_exists": ProblemType(
        (409,), "They have a login of their own here and were never a member.", "Invite them: they decide themselves."
    ),
    "intent_terminal": ProblemType(
        (409,), "The intent has ended, so it cannot be replaced or canceled.", "Read it: it says how it ended."
    ),
    "intent_busy": ProblemType(
        (409,),
        "Another REPLACE or CANCEL of the intent is on its way, or it is the leg of an order group that waits for "
        "another one.",
        "Wait until its status changes, then decide anew.",
    ),
    "client_id_taken": ProblemType(
        (409,),
        "Another order of the account has this `client_id`.",
        "Choose another; to repeat a request use `Idempotency-Key`.",
    ),
    "idempotent_request_in_flight": ProblemType(
        (409,),
        "A request with the same `Idempotency-Key` has not been answered yet.",
        "Wait a second and send it again, unchanged.",
    ),
    "statement_not_signed": ProblemType(
        (409,),
        "Nothing of this period is signed yet.",
        "Try again in a few seconds, or choose an earlier `from`.",
    ),
    "limit_reached": ProblemType(
        (409,),
        "There are as many of these as there may be.",
        "Delete one first; of bulk operations wait until some have completed, of prices use fewer symbols.",
    ),
    "open_intents": ProblemType(
        (409,),
        "The account has an open intent, or an order that may still be at the broker.",
        "Cancel what is open and wait, or delete it with `?cancel_open=true`.",
    ),
    "account_closing": ProblemType(
        (409,), "The account is being deleted, which cannot be taken back.", "Use another account."
    ),
    "unknown_broker": ProblemType(
        (409,),
        "The account's broker is no longer installed.",
        "Install its plug-in; `GET /v1/brokers` lists those installed.",
    ),
    # 412 to 415, 431
    "precondition_failed": ProblemType(
        (412,), "The resource has another version than `If-Match` says.", "Read it again and decide anew."
    ),
    "body_too_large": ProblemType(
        (413,), "The body is over 64 KiB, or in more than 1 024 chunks.", "Send less at once."
    ),
    "uri_too_long": ProblemType((414,), "The request line is over 8 KiB.", "Send a shorter one."),
    "not_json": ProblemType((415,), "The body is not declared as JSON.", "Send `Content-Type: application/json`."),
    "headers_too_large": ProblemType(
        (431,), "A header is over 8 KiB, or there are more than 100.", "Send fewer and shorter ones."
    ),
    # 422
    "invalid": ProblemType(
        (422,),
        "A field is missing, unknown or has a value that it does not take.",
        "Correct the fields that `errors` points at.",
    ),
    "rehearsal_off": ProblemType(
        (422,),
        "Live accounts at the paper broker are switched off here.",
        "Make a paper account, or one at another broker.",
    ),
    "broker_cannot": ProblemType(
        (422,),
        "The account's broker does not do this kind of order, time in force, quantity or symbol.",
        "Send what `capabilities` of `GET /v1/brokers` lists; `errors` points at the field.",
    ),
    "control_rejected": ProblemType(
        (422,),
        "A control on the account, the symbol, the organization or the key refused the command. Nothing was written.",
        "Read `reasons`: each names the control and says why. Change the order, or the control.",
    ),
    "idempotency_key_reused": ProblemType(
        (422,), "The `Idempotency-Key` was used for another body.", "Use a new key for every command."
    ),
    "batch_rejected": ProblemType(
        (422,),
        "A command of an atomic batch was refused, so none was accepted.",
        "Correct the commands that `results` refuses.",
    ),
    # 429
    "rate_limited": ProblemType((429,), "The caller's quota is used up.", _WAIT),
    "too_many_requests": ProblemType(
        (429,),
        "Too many requests of the organization at a time: this one waited for five seconds, or 256 were waiting "
        "already.",
        _WAIT,
    ),
    "too_many_streams": ProblemType(
        (429,), "As many event streams are open as may be.", "Close one, or read several types in one stream."
    ),
    # 5xx
    "internal": ProblemType(
        (500,), "A defect of ours.", "Report it with the `request_id`: it finds the request in the logs."
    ),
    "unsupported_transfer_coding": ProblemType(
        (501,), "`Transfer-Encoding` is something else than `chunked`.", "Send `Content-Length`, or chunks."
    ),
    "unavailable": ProblemType(
        (502, 503),
        "A dependency is down, and nothing was written; or the ingress (502) got no answer, and it may have been done.",
        f"{_WAIT} Repeat a command with its `Idempotency-Key`.",
    ),
    "outcome_unknown": ProblemType(
        (503,),
        "The database was lost at the very commit: it is not known whether it was done.",
        "Read before you repeat it, or repeat it with its `Idempotency-Key`.",
    ),
    "overloaded": ProblemType(
        (503,), "Commands wait too long to be sent, so no new CREATE or REPLACE is accepted. CANCEL passes.", _WAIT
    ),
}
