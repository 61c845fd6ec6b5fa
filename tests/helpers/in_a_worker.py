"""What a process of translation does in tests: the module is all that the process has to load for
it."""

import logging
import os
import signal


def warn(translator, requests):
    """Translate with a warning."""
    logging.getLogger("synmt.decode").warning("odd")
    return translator.translate_requests(requests)


def die(translator, requests):
    """Be killed."""
    os.kill(os.getpid(), signal.SIGKILL)
