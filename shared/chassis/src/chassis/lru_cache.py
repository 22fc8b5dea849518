"""A cache that forgets what was not used for longest."""

from collections import OrderedDict
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class LruCache(OrderedDict[Key, Value], Generic[Key, Value]):
    """The entries used last, at most `capacity` of them."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self._capacity = capacity

    def put(self, key: Key, value: Value) -> None:
        self[key] = value
        self.move_to_end(key)
        if len(self) > self._capacity:
            self.popitem(last=False)
