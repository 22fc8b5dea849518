"""What a web process knows of a caller before authentication: never enough to let in, never wrong to shut out."""

from contextlib import suppress
from typing import Any
from uuid import UUID, uuid4

import pytest

from chassis.callers import Callers, Reclassified, Trust, split_authorization
from chassis.principals import Kind, Principal


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def request(address: str = "10.0.0.1", **headers: str) -> dict[str, Any]:
    named = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    return {"headers": named, "client": (address, 1)}


def key_of(organization: UUID | None) -> Principal:
    return Principal(Kind.API_KEY, str(uuid4()), organization)


def verified(callers: Callers, principal: Principal, **headers: str) -> None:
    check = callers.classify(request(**headers))
    with suppress(Reclassified):  # unless it is known already
        check.verify(principal)
    callers.settle(check)


def refused(callers: Callers, address: str, times: int) -> None:
    for number in range(times):
        check = callers.classify(request(address, x_api_key=f"invented-{number}"))
        check.refuse()
        callers.settle(check)


def test_a_credential_counts_against_its_organization_once_it_was_verified() -> None:
    callers, organization = Callers(), uuid4()
    assert callers.classify(request(x_api_key="k")).caller.trust is Trust.UNVERIFIED

    verified(callers, key_of(organization), x_api_key="k")

    assert callers.classify(request(x_api_key="k")).caller[:2] == (Trust.VERIFIED, str(organization))
    assert callers.classify(request(x_api_key="K")).caller.trust is Trust.UNVERIFIED


def test_a_tenant_is_alone_until_another_one_comes_and_again_a_second_after_it_went() -> None:
    clock = Clock()
    callers = Callers(clock=clock)
    for name in ("mine", "mine_too", "theirs"):
        verified(callers, key_of(UUID(int=len(name.split("_")[0]))), x_api_key=name)
    mine = callers.classify(request(x_api_key="mine")).caller
    callers.classify(request(x_api_key="mine_too"))
    callers.classify(request(x_api_key="strange"))
    assert callers.is_alone(mine)

    callers.classify(request(x_api_key="theirs"))
    callers.classify(request(x_api_key="mine"))
    assert not callers.is_alone(mine)

    clock.now += 1.1
    assert callers.is_alone(mine)


def test_the_same_text_in_another_header_is_another_credential() -> None:
    callers = Callers()
    verified(callers, key_of(uuid4()), x_api_key="k")

    assert callers.classify(request(authorization="k")).caller.trust is Trust.UNVERIFIED
    assert callers.classify(request(x_api_key="k", authorization="k")).caller.trust is Trust.UNVERIFIED


def test_a_token_is_one_credential_however_its_header_is_written() -> None:
    callers = Callers()
    written = [f"Bearer{' ' * spaces}token" for spaces in range(1, 50)]
    written += ["bearer token", "BEARER token", "bEaReR \t token \t "]
    for authorization in written:
        verified(callers, key_of(uuid4()), authorization=authorization)

    assert len(callers._verified_callers) == 1
    assert {split_authorization(authorization) for authorization in written} == {("bearer", "token")}


@pytest.mark.parametrize("odd", ["\xa0", "\x85", "\xa0\x85\xa0", "\x1c", "\x0b"])
def test_what_is_no_blank_is_a_part_of_the_credential(odd: str) -> None:
    callers = Callers()
    verified(callers, key_of(uuid4()), authorization="Bearer token")

    assert split_authorization(f"Bearer token{odd}") == ("bearer", f"token{odd}")
    assert callers.classify(request(authorization=f"Bearer token{odd}")).caller.trust is Trust.UNVERIFIED


def test_a_service_account_is_a_tenant_by_itself_whichever_organization_it_names() -> None:
    callers, account = Callers(), Principal(Kind.SERVICE_ACCOUNT, "sa_1", uuid4())
    verified(callers, account, authorization="Bearer t")

    assert callers.classify(request(authorization="Bearer t")).caller.tenant == "service_account:sa_1"


def test_a_revoked_credential_is_a_strangers_from_its_first_refusal_on() -> None:
    callers = Callers()
    verified(callers, key_of(uuid4()), x_api_key="k")

    check = callers.classify(request(x_api_key="k"))
    check.refuse()
    callers.settle(check)

    assert callers.classify(request(x_api_key="k")).caller.trust is Trust.UNVERIFIED


def test_an_address_whose_credentials_are_refused_again_and_again_has_to_wait_and_no_other() -> None:
    clock = Clock()
    callers = Callers(refused_per_minute=60, clock=clock)
    refused(callers, "10.0.0.1", 59)
    assert not callers.must_wait(callers.classify(request("10.0.0.1", x_api_key="next")).caller)

    refused(callers, "10.0.0.1", 1)
    assert callers.must_wait(callers.classify(request("10.0.0.1", x_api_key="next")).caller)
    assert not callers.must_wait(callers.classify(request("10.0.0.2", x_api_key="next")).caller)

    clock.now += 2.0
    assert not callers.must_wait(callers.classify(request("10.0.0.1", x_api_key="next")).caller)


def test_a_known_credential_never_waits_for_what_others_at_its_address_do() -> None:
    callers = Callers(refused_per_minute=60)
    verified(callers, key_of(uuid4()), x_api_key="k")
    refused(callers, "10.0.0.1", 1_000)

    assert not callers.must_wait(callers.classify(request("10.0.0.1", x_api_key="k")).caller)


def test_a_forwarded_address_is_believed_as_far_as_our_own_proxies_have_written_it() -> None:
    forwarded = request("10.0.0.1", x_forwarded_for="6.6.6.6, 7.7.7.7", x_api_key="k")

    assert Callers().classify(forwarded).caller.tenant == "10.0.0.1"
    assert Callers(trusted_proxies=1).classify(forwarded).caller.tenant == "7.7.7.7"
    assert Callers(trusted_proxies=2).classify(forwarded).caller.tenant == "6.6.6.6"
    assert Callers(trusted_proxies=3).classify(forwarded).caller.tenant == "10.0.0.1"


def test_what_is_kept_of_callers_is_bounded() -> None:
    callers = Callers()
    for number in range(10_500):
        refused(callers, f"address-{number}", 1)
        verified(callers, key_of(None), x_api_key=f"k{number}")

    assert len(callers._verified_callers) == len(callers._refusals) == 10_000
    trusts = [callers.classify(request(x_api_key=key)).caller.trust for key in ("k10499", "k0")]
    assert trusts == [Trust.VERIFIED, Trust.UNVERIFIED]
