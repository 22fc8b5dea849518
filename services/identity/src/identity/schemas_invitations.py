"""Invitations, in and out."""

from marshmallow import Schema, fields

from chassis.fields import Choice, Identifier, Instant, Text
from identity.schemas import ROLES, ProviderId


class InvitationRequest(Schema):
    subject = ProviderId(longest=255, required=True)
    role = Choice(ROLES, required=True)


class Invitation(Schema):
    id = Identifier(required=True)
    organization_id = Identifier(required=True)
    subject = Text(longest=255, required=True)
    role = Choice(ROLES, required=True)
    invited_by = Text(longest=255, required=True)
    created_at = Instant(required=True)
    expires_at = Instant(required=True)


class CreatedInvitation(Invitation):
    """The one answer that holds the codes themselves."""

    code = Text(longest=64, required=True)
    one_time_code = Text(longest=64, required=True, allow_none=True)


class InvitationPage(Schema):
    data = fields.List(fields.Nested(Invitation), required=True)
    next_cursor = Text(longest=500, required=True, allow_none=True)


class AcceptInvitationRequest(Schema):
    code = Text(longest=255, required=True)
