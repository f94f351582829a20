"""What a writer needs of paths; whoever has these can be exported."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray


class PathRows(Protocol):
    """n synthetic people at q times, d features."""

    @property
    def values(self) -> NDArray[Any]:
        """(n, q, d) in data units."""

    @property
    def numeric_times(self) -> NDArray[Any]:
        """(q,) numbers; seconds since 1970-01-01 UTC when `datetime`."""

    @property
    def times(self) -> NDArray[Any]:
        """(q,) in the user's form."""

    @property
    def features(self) -> tuple[str, ...]:
        """d names."""

    @property
    def time_name(self) -> str:
        """Name of the time column."""

    @property
    def datetime(self) -> bool:
        """Whether times are dates."""

    def __len__(self) -> int:
        """n."""

    def to_arrow(self) -> Any:
        """The long table: path, time, one column per feature."""

    def to_frame(self) -> Any:
        """The same in pandas."""
