"""An empirical check of the guarantee: attack the real pipeline, bound epsilon from below."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
