"""`python -m privtraj`, where the script `privtraj` is not on the path."""

import sys

from privtraj.cli import main

if __name__ == "__main__":
    sys.exit(main())
