"""Every table and figure of the paper again, with its settings and with ours beside them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
