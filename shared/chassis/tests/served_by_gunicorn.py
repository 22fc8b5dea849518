"""gunicorn with what its workers import for served_app, as a script that can be forked: see `tip_testing.processes`."""

from gunicorn.app.wsgiapp import run

from chassis import callers, gunicorn_worker, http_connection

__all__ = ["callers", "gunicorn_worker", "http_connection", "run"]

if __name__ == "__main__":
    run()
