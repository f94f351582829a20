from .attack import (
    Audit as Audit,
)
from .attack import (
    audit as audit,
)
from .attack import (
    compare as compare,
)
