"""`python -m bgnlm` is the command `bgnlm`."""

import sys

from bgnlm.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
