"""canaille, an OpenID Connect provider nobody here wrote, as a process: `python canaille_server.py PORT CALLBACK_PORT`.

It keeps its users in memory. Two clients are made here, the platform's and that of `tip login`, because canaille's
own command for it needs a database; all else (users, tokens, keys, deletion) goes over its real interfaces.
"""

import sys

from canaille import create_app
from canaille.app import models
from canaille.backends import Backend
from werkzeug.serving import make_server

CLIENT_ID, CLIENT_SECRET = "tip-test-client", "tip-test-client-secret"
PUBLIC_ID = "tip-test-people"


def main(port: int, callback_port: int) -> None:
    app = create_app(
        {
            "SECRET_KEY": "for-tests-only",
            "SERVER_NAME": f"127.0.0.1:{port}",
            "PREFERRED_URL_SCHEME": "http",
            "DEBUG": False,
            "CANAILLE": {"DATABASE": "memory"},
            "CANAILLE_OIDC": {
                "USERINFO_MAPPING": {"SUB": "{{ user.id }}", "WEBSITE": "{{ user.organization }}"},
            },
            "CANAILLE_SCIM": {"ENABLE_SERVER": True},
        },
    )
    with app.app_context():
        client = models.Client(
            client_id=CLIENT_ID,
            client_secret=CLIENT_SECRET,
            client_name="platform",
            client_uri=f"http://127.0.0.1:{port}",
            redirect_uris=[f"http://127.0.0.1:{port}/callback"],
            grant_types=["password", "client_credentials"],
            response_types=["code"],
            scope=["openid", "profile", "groups"],
            token_endpoint_auth_method="client_secret_basic",
            id_token_signed_response_alg="RS256",
        )
        Backend.instance.save(client)
        client.audience = [client]
        Backend.instance.save(client)
        people = models.Client(
            client_id=PUBLIC_ID,
            client_name="tip",
            client_uri=f"http://127.0.0.1:{port}",
            redirect_uris=[f"http://127.0.0.1:{callback_port}/callback"],
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
            scope=["openid", "profile", "groups"],
            token_endpoint_auth_method="none",
            id_token_signed_response_alg="RS256",
        )
        Backend.instance.save(people)
        people.audience = [client]
        Backend.instance.save(people)
    make_server("127.0.0.1", port, app, threaded=True).serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
