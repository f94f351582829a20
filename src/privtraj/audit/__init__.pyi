from .attack import audit as audit
from .findings import Audit as Audit
from .findings import Finding as Finding
from .findings import compare as compare
