"""Accounts, credentials, controls, organizations and keys through the client, on a whole platform."""

import json
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from sdk_platform import Platform

import tip_client as tip
from tip_testing.waiting import eventually


def test_an_account_and_its_credential_live_and_end(platform: Platform) -> None:
    with platform.admin() as admin:
        account = admin.accounts.create("sdk", broker="paper", environment="paper", time_zone="Europe/Berlin")
        credentials = admin.for_account(account.id).credentials
        made = credentials.add("first", {"key_id": "K1", "secret_key": uuid4().hex})
        eventually(lambda: credentials.read(made.id).status is tip.CredentialStatus.ACTIVE)
        assert credentials.test(made.id).status is tip.CredentialStatus.ACTIVE
        eventually(lambda: credentials.read(made.id).test_status is tip.CredentialTestStatus.ACCEPTED)
        rotated = credentials.rotate(made.id, {"key_id": "K2", "secret_key": uuid4().hex})

        assert rotated.version == made.version + 1
        assert [credential.id for credential in credentials.list()] == [made.id]
        assert admin.accounts.change(account.id, name="renamed", if_match=account.version).name == "renamed"
        with pytest.raises(tip.PreconditionFailed):
            admin.accounts.change(account.id, name="again", if_match=account.version)
        assert admin.accounts.disable(account.id, reason="audit").disabled_reason == "audit"
        assert not admin.accounts.enable(account.id).disabled
        assert account.id in {found.id for found in admin.accounts.list(page_size=2)}

        credentials.delete(made.id)
        admin.accounts.delete(account.id)
        with pytest.raises(tip.NotFound):
            admin.accounts.read(account.id)


def test_an_account_with_open_orders_is_deleted_when_they_have_ended(platform: Platform, own_account: str) -> None:
    with platform.admin() as admin, tip.Client(settings=platform.settings(account=own_account)) as client:
        client.buy("SIM.OPEN", 1, limit="1.00").wait("ACCEPTED", timeout=60)
        with pytest.raises(tip.Conflict) as raised:
            admin.accounts.delete(own_account)
        assert raised.value.code == "open_intents"

        admin.accounts.delete(own_account, cancel_open=True)

        eventually(lambda: own_account not in {found.id for found in admin.accounts.list(page_size=500)})


def test_brokers_say_what_they_can_do(platform: Platform) -> None:
    with platform.admin() as admin:
        brokers = {broker.name: broker for broker in admin.accounts.brokers()}

    assert "Limit" in brokers["paper"].capabilities.kinds
    assert brokers["alpaca"].needs_credential and not brokers["paper"].needs_credential


def test_controls_are_set_read_and_removed(platform: Platform, own_account: str, symbol: str) -> None:
    with platform.admin() as admin:
        controls = admin.for_account(own_account).controls
        controls.disable_symbol(symbol, reason="earnings")
        hours = controls.set_trading_hours(symbol, start=time(9, 30), end=time(16), stale_order_millis=60_000)
        limits = controls.set_symbol_limits(symbol, max_quantity=Decimal("10.5"), allow_short=False)
        whole = controls.set_limits(max_orders_per_minute=100, denied_symbols=["GME"])

        assert (hours.trading_start, hours.stale_order_millis) == (time(9, 30), 60_000)
        assert (limits.max_quantity, limits.allow_short, limits.max_notional) == (Decimal("10.5"), False, None)
        assert (whole.denied_symbols, controls.limits()) == (("GME",), whole)
        [found] = controls.symbols()
        assert found.manual == controls.symbol(symbol) and found.time == controls.trading_hours(symbol)
        assert found.limits == controls.symbol_limits(symbol)
        assert controls.set_trading_hours(symbol, clear=["stale_order_millis"]).stale_order_millis is None
        assert not controls.enable_symbol(symbol).manually_disabled

        controls.remove_symbol(symbol)
        controls.remove_trading_hours(symbol)
        controls.remove_symbol_limits(symbol)
        controls.remove_limits()
        with pytest.raises(tip.NotFound):
            controls.limits()
        assert next(controls.history(page_size=3)).to is None


def test_a_switch_halts_an_account_and_cancels_its_orders(platform: Platform, own_account: str) -> None:
    with platform.admin() as admin, tip.Client(settings=platform.settings(account=own_account)) as client:
        order = client.buy("SIM.OPEN", 1, limit="1.00").wait("ACCEPTED", timeout=60)
        controls = admin.for_account(own_account).controls

        halted = controls.set_trading_state("HALTED", reason="loss", cancel_open=True)

        assert halted.trading_state is tip.TradingState.HALTED and halted.bulk_operation_id
        assert order.wait(timeout=60).status is tip.Status.CANCELED
        with pytest.raises(tip.ControlRejected):
            client.buy("AAPL", 1)
        controls.remove_trading_state()
        assert client.buy("AAPL", 1).wait("FILLED", timeout=60)


def test_a_preview_says_whether_an_order_would_pass(platform: Platform, own_account: str, symbol: str) -> None:
    with platform.admin() as admin:
        controls = admin.for_account(own_account).controls
        controls.set_limits(max_notional=1000)
        order = tip.Market(symbol, "BUY", 10, client_id="not-judged")

        refused = controls.preview(order, facts={"reference_price": Decimal(101)})
        allowed = controls.preview(order, facts={"reference_price": Decimal(99)})

    assert [reason.code for reason in refused.reasons] == ["NOTIONAL_ABOVE_LIMIT"]
    assert allowed.is_allowed and not refused.is_allowed
    assert allowed.facts.reference_price == 99


def test_the_organization_is_switched_by_its_admin(platform: Platform) -> None:
    with platform.admin() as admin:
        assert admin.controls.set_organization_state("ACTIVE", reason="checked").reason == "checked"
        assert admin.controls.organization_state().trading_state is tip.TradingState.ACTIVE
        admin.controls.remove_organization_state()
        assert next(admin.controls.organization_history()).to is None


def test_holdings_have_their_age(client: tip.Client, symbol: str) -> None:
    client.buy(symbol, 2).wait("FILLED", timeout=60)

    client.refresh()
    held = eventually(lambda: [found for found in client.positions() if found.symbol == symbol])
    assert (held[0].quantity, held[0].as_of.tzinfo) == (Decimal(2), UTC)
    assert eventually(lambda: client.balances().equity)
    assert eventually(lambda: client.quote(symbol).last)


def test_keys_are_made_changed_and_deleted(platform: Platform) -> None:
    later = datetime.now(UTC) + timedelta(days=1)
    with platform.admin() as admin:
        made = admin.keys.create("bot", environment="paper", permissions=["intent:read"], expires_at=later)
        assert admin.me.validate_key(made.key).id == made.id
        with tip.Client(platform.local["base_url"], key=made.key) as bot:
            assert bot.me.read().permissions == ("intent:read",)
        assert admin.keys.change(made.id, name="renamed", disabled=True).disabled
        assert made.id in {key.id for key in admin.keys.list(page_size=500)}
        assert admin.keys.read(made.id).name == "renamed"
        admin.keys.delete(made.id)
        with pytest.raises(tip.NotFound):
            admin.keys.read(made.id)


def test_organizations_and_people_are_run_by_operators(platform: Platform) -> None:
    with platform.operator() as operator, platform.admin() as admin:
        made = operator.organizations.create(f"sdk/{uuid4().hex}", "SDK")
        assert operator.organizations.by_provider(made.provider, made.external_id) == made
        assert operator.organizations.change(made.id, disabled=True).disabled
        assert operator.organizations.put_entitlement(made.id, "trading_live").name == "trading_live"
        assert [held.name for held in operator.organizations.entitlements(made.id)] == ["trading_live"]
        operator.organizations.remove_entitlement(made.id, "trading_live")
        assert made.id in {found.id for found in operator.organizations.list(page_size=500)}

        own = platform.local["organizations"]["acme"]["id"]
        subject = f"somebody|{uuid4().hex}/x"
        assert admin.organizations.put_member(own, subject, "read_only").role is tip.Role.READ_ONLY
        assert admin.organizations.member(own, subject).subject == subject
        assert subject in {member.subject for member in admin.organizations.members(own)}
        admin.organizations.remove_member(own, subject)
        removed, made_member = admin.organizations.audit_entries(own, target=subject, page_size=1)
        assert (removed.type, removed.from_, removed.to) == ("membership.deleted", {"role": "read_only"}, None)
        assert removed.actor.type == "user" and removed.sequence > made_member.sequence
        exported = b"".join(admin.organizations.export_audit_entries(own, from_=made_member.created_at))
        assert [json.loads(line)["target"] for line in exported.splitlines()].count(subject) == 2
        assert admin.me.user().role is tip.Role.ADMIN


def test_a_user_is_invited_accepts_and_leaves(platform: Platform) -> None:
    acme, globex = (platform.local["organizations"][name] for name in ("acme", "globex"))
    with (
        platform.admin() as admin,
        tip.Client(platform.local["base_url"], token=globex["tokens"]["member"]) as guest,
    ):
        subject = guest.me.user().subject
        revoked = admin.organizations.invite(acme["id"], subject, "admin")
        assert revoked.one_time_code and revoked.one_time_code not in repr(revoked)
        admin.organizations.revoke_invitation(acme["id"], revoked.id)
        with pytest.raises(tip.NotFound):
            guest.me.accept_invitation(revoked.code)
        made = admin.organizations.invite(acme["id"], subject, "read_only")
        assert made.code not in repr(made)
        assert admin.organizations.invitation(acme["id"], made.id).subject == subject
        assert made.id in {found.id for found in admin.organizations.invitations(acme["id"])}

        joined = guest.me.accept_invitation(made.code)

        assert (joined.organization_id, joined.role) == (acme["id"], tip.Role.READ_ONLY)
        guest.me.leave(acme["id"])
        assert subject not in {member.subject for member in admin.organizations.members(acme["id"])}


def test_a_service_account_gets_its_token(platform: Platform) -> None:
    with platform.operator() as operator:
        made = operator.service_accounts.create("sdk", ["intent:read"])
        rotated = operator.service_accounts.rotate_secret(made.client_id)
        token = operator.me.token(made.client_id, rotated.client_secret)
        with tip.Client(platform.local["base_url"], token=lambda: token.access_token) as robot:
            assert robot.me.read().scopes == ("intent:read",)
        with pytest.raises(tip.Unauthenticated):
            operator.me.token(made.client_id, made.client_secret)
        assert operator.service_accounts.change(made.client_id, disabled=True).disabled
        assert operator.service_accounts.read(made.client_id).name == "sdk"
        assert made.client_id in {found.client_id for found in operator.service_accounts.list(page_size=500)}
        operator.service_accounts.delete(made.client_id)


def test_failed_outbox_rows_are_for_operators(platform: Platform, client: tip.Client) -> None:
    with platform.admin() as admin:
        assert all(row.redriven_as is None for row in admin.accounts.failed_outbox_rows(redriven=False))
        with pytest.raises(tip.NotFound):
            admin.accounts.redrive_outbox_row(2**63 - 1)
    with pytest.raises(tip.Forbidden):
        client.accounts.redrive_outbox_row(1)


def test_the_outbox_health_is_for_operators(platform: Platform, client: tip.Client) -> None:
    with platform.admin() as admin:
        assert admin.accounts.outbox_health().completed > 0
    with pytest.raises(tip.Unauthenticated) as raised:
        client.accounts.outbox_health()
    assert raised.value.detail
