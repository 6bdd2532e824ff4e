"""``python -m hermes_tui``."""

import sys

from hermes_tui.main import main

sys.exit(main())
