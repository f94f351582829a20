"""Reference processes: how people would move if nothing but their law at each time were known."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
