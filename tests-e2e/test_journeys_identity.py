"""Who is calling: the specification's identity part, through the front door."""

from typing import Any


def test_a_key_proves_itself(stack: Any) -> None:
    acme = stack.organization("acme")

    answer = stack.nobody()("POST", "/api/v1/auth/api-key/validate", {"api_key": acme["api_keys"]["live"]})

    assert answer.status_code == 200
    assert (answer.json()["organization_id"], answer.json()["environment"]) == (acme["id"], "live")


def test_an_organization_is_looked_up_by_its_providers_id(stack: Any) -> None:
    acme = stack.organization("acme")
    path = f"/v1/organizations/by-provider/{acme['provider']}/{acme['external_id']}"

    assert stack.service()("GET", path).json()["id"] == acme["id"]
    assert stack.user("acme", "read_only")("GET", path).json()["external_id"] == "acme"
    assert stack.user("globex")("GET", path).status_code == 404
    assert stack.key("acme")("GET", path).status_code == 403
