"""The process behind a load: started as a script, so that it has little to import."""

import pickle
import sys
import threading

from attack_http import HttpConnection, NoAnswer


def flood(address: tuple[str, int], requests: list[bytes], connections: int) -> None:
    def send(number: int) -> None:
        with HttpConnection(address) as http:
            while True:
                for request in requests[number % len(requests) :]:
                    try:
                        http.exchange(request)
                    except NoAnswer:
                        http.close()

    threads = [threading.Thread(target=send, args=(number,), daemon=True) for number in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    flood(*pickle.load(sys.stdin.buffer))
