"""How good are synthetic people? Scores with definitions, each read against a floor and a ceiling.

All of them compare with raw data, so none of their values is private: they are for the people who
may see the data, not for release. Definitions and how to read them: docs/metrics.md.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
