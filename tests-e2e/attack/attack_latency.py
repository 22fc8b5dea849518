"""How long a quiet tenant waits for what it does all day: submit, read, write a control."""

import json
import time
from dataclasses import dataclass, field

from attack_http import HttpConnection, NoAnswer, written
from attack_tenants import JSON, Tenant, create, keyed

PAUSE_S = 0.02
ACCEPTED = frozenset({200, 201})
NO_ANSWER = 0


@dataclass
class Latencies:
    seconds: dict[str, list[float]] = field(default_factory=dict)
    statuses: dict[str, list[int]] = field(default_factory=dict)

    def p99(self, kind: str) -> float:
        ordered = sorted(self.seconds[kind])
        return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]

    def shown(self) -> dict[str, int]:
        return {kind: round(1000 * self.p99(kind)) for kind in self.seconds}


def measured(address: tuple[str, int], tenant: Tenant, samples: int, within_s: float) -> Latencies:
    """The three by turns, on one connection each, as an application has them; fewer when time is over."""
    found, ends = Latencies(), time.monotonic() + within_s
    requests = _requests(tenant)
    connections = {kind: HttpConnection(address) for kind in requests}
    for number in range(samples):
        if number and time.monotonic() > ends:
            break
        for kind, request in requests.items():
            began = time.monotonic()
            try:
                status = connections[kind].exchange(request).status
            except NoAnswer:
                status = NO_ANSWER
            found.seconds.setdefault(kind, []).append(time.monotonic() - began)
            found.statuses.setdefault(kind, []).append(status)
            time.sleep(PAUSE_S)
    for http in connections.values():
        http.close()
    return found


def _requests(tenant: Tenant) -> dict[str, bytes]:
    account, key = tenant.accounts["paper"], keyed(tenant.api_keys["paper"])
    submit, control = json.dumps(create()).encode(), json.dumps({"manually_disabled": False}).encode()
    return {
        "submit": written("POST", f"/v1/accounts/{account}/intents", (*key, JSON), submit),
        "read": written("GET", f"/v1/accounts/{account}/intents/{tenant.intents['paper']}", key),
        "control write": written("PUT", f"/v1/controls/accounts/{account}/symbols/QUIET", (*key, JSON), control),
    }
