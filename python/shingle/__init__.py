"""An embedded, ordered key-value store that writes little.

    import shingle

    with shingle.open("fruit.db") as db:
        db[b"apple"] = b"red"
        for key, value in db.scan(prefix=b"a"):
            print(key, value)

Keys and values are bytes; a text is its UTF-8. A database is a mapping: everything that works with a
dictionary of bytes works with it, ``shelve.Shelf`` too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, MutableMapping, Sequence, ValuesView
from typing import Any, Literal, Optional, Union

from . import _shingle
from ._shingle import (
    AlreadyExists,
    Batch,
    Cancelled,
    Closed,
    Conflict,
    Corruption,
    Error,
    Incompatible,
    InvalidArgument,
    Io,
    Locked,
    NoSpace,
    NotFound,
    Poisoned,
    Resources,
    Shared,
    TooLate,
    Transaction,
    Unsupported,
    WouldWait,
    __version__,
    destroy,
    options,
)
from ._types import Data, Durability, Path

__all__ = [
    "AlreadyExists",
    "Batch",
    "Cancelled",
    "Closed",
    "Conflict",
    "Corruption",
    "Database",
    "Error",
    "Incompatible",
    "InvalidArgument",
    "Io",
    "Keyspace",
    "Locked",
    "NoSpace",
    "NotFound",
    "Poisoned",
    "Resources",
    "Shared",
    "Snapshot",
    "TooLate",
    "Transaction",
    "Unsupported",
    "WouldWait",
    "__version__",
    "destroy",
    "error",
    "open",
    "options",
]

# The name that dbm modules give their exception.
error = Error

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shingle.note_fork)


class _Keys(KeysView):
    def __iter__(self):
        return self._mapping._scan("keys")

    def __reversed__(self):
        return self._mapping._scan("keys", reverse=True)


class _Values(ValuesView):
    def __iter__(self):
        return self._mapping._scan("values")

    def __reversed__(self):
        return self._mapping._scan("values", reverse=True)

    def __contains__(self, value: object) -> bool:
        return any(value == found for found in self)


class _Items(ItemsView):
    def __iter__(self):
        return self._mapping._scan("items")

    def __reversed__(self):
        return self._mapping._scan("items", reverse=True)


class _Scans:
    """Ordered reads of keyspaces and snapshots."""

    _scan: Callable[..., Iterator[Any]]

    def keys(self) -> KeysView[bytes]:
        return _Keys(self)

    def values(self) -> ValuesView[bytes]:
        return _Values(self)

    def items(self) -> ItemsView[bytes, bytes]:
        return _Items(self)

    def __reversed__(self) -> Iterator[bytes]:
        return self._scan("keys", reverse=True)

    def scan(
        self,
        start: Optional[Data] = None,
        end: Optional[Data] = None,
        *,
        prefix: Optional[Data] = None,
        reverse: bool = False,
        background: bool = False,
    ) -> Iterator[tuple[bytes, bytes]]:
        """An iterator over pairs with keys from ``start`` on and before ``end``, or with a prefix, as
        they are now. ``background`` reads in large pieces and leaves the cache alone. An iterator that
        is not used to its end holds tables until it goes, or until its ``close``."""
        return self._scan("items", start, end, prefix, reverse, background)

    def scan_keys(
        self,
        start: Optional[Data] = None,
        end: Optional[Data] = None,
        *,
        prefix: Optional[Data] = None,
        reverse: bool = False,
        background: bool = False,
    ) -> Iterator[bytes]:
        """Like ``scan``, keys alone."""
        return self._scan("keys", start, end, prefix, reverse, background)


class _Table(_shingle.Table, _Scans, MutableMapping):
    """The keys and values of a keyspace."""

    keys = _Scans.keys
    values = _Scans.values
    items = _Scans.items

    clear = _shingle.Table.clear

    def popitem(self) -> tuple[bytes, bytes]:
        """Removes the first key and returns it with its value."""
        for key, value in self.scan():
            self.delete(key)
            return key, value
        raise KeyError("the keyspace is empty")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return dict(self.items()) == dict(other.items())

    __hash__ = None  # It can be changed, and equals what has the same keys and values.


class Keyspace(_Table):
    """A keyspace: keys and values beside those of the database, with properties of its own."""

    def __new__(cls, store, *arguments, **properties):
        return super().__new__(cls, store, *arguments, **properties)

    def __repr__(self) -> str:
        return f"<shingle.Keyspace {self.name!r}>"


class Snapshot(_Scans, Mapping):
    """A keyspace at a moment, until it is closed."""

    def __init__(self, held):
        self._held = held

    def _scan(self, *arguments, **named):
        return self._held._scan(*arguments, **named)

    def of(self, keyspace: Keyspace) -> Snapshot:
        """The same moment of another keyspace."""
        return Snapshot(self._held.of(keyspace))

    def get(self, key: Data, default: Any = None) -> Any:
        return self._held.get(key, default)

    def multi_get(self, keys: Sequence[Data]) -> list[Optional[bytes]]:
        """The values of several keys, read together; None where there is none."""
        return self._held.multi_get(list(keys))

    def __getitem__(self, key: Data) -> bytes:
        value = self._held.get(key)
        if value is None:
            raise KeyError(key.encode() if isinstance(key, str) else bytes(key))
        return value

    def __contains__(self, key: object) -> bool:
        try:
            return self._held.get(key) is not None
        except TypeError:
            return False

    def __iter__(self) -> Iterator[bytes]:
        return self._scan("keys")

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def close(self) -> None:
        self._held.close()

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Database(_Table):
    """An open database. As a mapping it is its default keyspace. ``create_new`` refuses one that
    exists: of several processes that create it at once, one succeeds."""

    _store: _shingle.Store

    def __new__(
        cls,
        path: Path,
        *,
        create: bool = True,
        create_new: bool = False,
        read_only: bool = False,
        resources: Optional[Resources] = None,
        **options: Union[str, int, float, bool],
    ) -> Database:
        settings = [(name, _text(value)) for name, value in options.items()]
        store = _shingle.Store(os.fspath(path), settings, create, create_new, read_only, resources)
        made = super().__new__(cls, store)
        made._store = store
        return made

    @property
    def path(self) -> str:
        return self._store.path

    def __repr__(self) -> str:
        return f"<shingle.Database {self.path!r}>"

    def close(self) -> None:
        """Closes the database. What was acknowledged survives a power loss when this returns. A
        second time does nothing."""
        self._store.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def keyspace(
        self,
        name: str,
        *,
        create: bool = True,
        merge_operator: Optional[str] = None,
        ttl: Optional[float] = None,
        prefix_bytes: int = 0,
        without_wal: bool = False,
    ) -> Keyspace:
        """The keyspace called ``name``; one that does not exist is created."""
        return Keyspace(
            self._store,
            name,
            create=create,
            merge_operator=merge_operator,
            ttl=ttl,
            prefix_bytes=prefix_bytes,
            without_wal=without_wal,
        )

    def keyspaces(self) -> list[str]:
        """The names of all keyspaces."""
        return self._store.keyspaces()

    def drop_keyspace(self, name: str) -> None:
        """Removes a keyspace with everything in it."""
        self._store.drop_keyspace(name)

    def batch(self, *, durability: Durability = None, wait: bool = True) -> Batch:
        """Operations that happen together or not at all: write them with ``write``, or at the end of
        a ``with`` block."""
        return Batch(self._store, durability, wait)

    def transaction(
        self,
        *,
        isolation: Literal["serializable", "snapshot"] = "serializable",
        lock_timeout: Optional[float] = None,
        durability: Durability = None,
    ) -> Transaction:
        """Reads and writes that happen together or not at all; commits at the end of a ``with``
        block. Raises ``Conflict`` where another write came between."""
        return Transaction(self._store, isolation, lock_timeout, durability)

    def snapshot(self) -> Snapshot:
        """The state as it is now."""
        return Snapshot(_shingle.Snapshot(self._store))

    def flush(self) -> None:
        """Writes what is in memory to tables."""
        self._store.flush()

    def begin_flush(self) -> None:
        """Begins what ``flush`` does, and does not wait for its end."""
        self._store.begin_flush()

    def sync(self) -> None:
        """Makes every earlier write durable."""
        self._store.sync()

    def compact(self) -> None:
        """Compacts everything."""
        self._store.compact()

    def wait_idle(self) -> None:
        """Waits until no background work is due."""
        self._store.wait_idle()

    def wait_writable(self, bytes: int, timeout: Optional[float] = None) -> bool:
        """Waits until ``bytes`` can be written without a wait: whether they can, after at most
        ``timeout`` seconds. Ctrl-C ends the wait."""
        return self._store.wait_writable(bytes, timeout)

    def checkpoint(self, target: Path) -> None:
        """Copies the database as it is now to a new directory, by links where it can."""
        self._store.checkpoint(os.fspath(target))

    def check(
        self, progress: Optional[Callable[[int, int, str], Optional[bool]]] = None
    ) -> list[str]:
        """Reads everything and compares it with its checksums: a list of problems, in words.
        ``progress(done, total, what)`` hears how far it is, and returns False to cancel. Ctrl-C
        cancels too."""
        return self._store.check(progress)

    def stats(self) -> dict[str, Any]:
        """Statistics, as a dictionary."""
        return json.loads(self._store.stats_json())

    def property(self, name: str) -> Optional[str]:
        """A property by its name, or None."""
        return self._store.property(name)

    def set_option(self, name: str, value: Union[str, int, float, bool]) -> None:
        """Changes an option of the open database."""
        self._store.set_option(name, _text(value))


def _text(value: Union[str, int, float, bool]) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def open(path: Path, flag: str = "c", mode: int = 0o666, **options: Any) -> Database:
    """Opens a database. ``flag`` is that of ``dbm.open``: "r" reads only, "w" writes to one that
    exists, "c" creates one where there is none, "n" begins an empty one. ``mode`` is for callers that
    pass it to every dbm module, and does nothing. Options go by the names of ``shingle.options()``.
    """
    if flag not in ("r", "w", "c", "n"):
        raise InvalidArgument(f"flag is 'r', 'w', 'c' or 'n', not {flag!r}")
    options.setdefault("create", flag in "cn")
    options.setdefault("read_only", flag == "r")
    db = Database(path, **options)
    if flag == "n":
        try:
            for name in db.keyspaces():
                if name != "default":
                    db.drop_keyspace(name)
            db.clear()
        except BaseException:
            db.close()
            raise
    return db
