"""identity in a process of its own, which a crash point can end: python identity_server.py PORT."""

import sys

from werkzeug.serving import make_server

from identity.app import create_app

if __name__ == "__main__":
    make_server("127.0.0.1", int(sys.argv[1]), create_app(), threaded=True).serve_forever()
