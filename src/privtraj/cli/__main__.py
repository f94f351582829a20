"""`python -m privtraj.cli`."""

import sys

from privtraj.cli import main

if __name__ == "__main__":
    sys.exit(main())
