"""Types of arguments."""

from __future__ import annotations

import os
from typing import Literal, Optional, TypeVar, Union

Data = Union[bytes, bytearray, memoryview, str]
Default = TypeVar("Default")
Durability = Optional[Literal["buffered", "synced"]]
Part = Literal["keys", "values", "items"]
Path = Union[str, "os.PathLike[str]"]
