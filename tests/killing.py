"""A process that ends between two lines of the source, as if by kill -9."""

import os
import sys
import warnings

READING = ("strict_json", "bounded", "_object", "_number")  # many lines that change nothing


def killed_at(number, call, files):
    """Run the call in a child that ends at once at the line of that number, counted over all that
    are run in files of these names; whether it came to its end before.

    Nothing is flushed, unlocked or rolled back by the child: what the system has is what is left.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads; the child starts none
        child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    passed = 0

    def trace(frame, event, _):
        nonlocal passed
        if not frame.f_code.co_filename.endswith(files) or frame.f_code.co_name in READING:
            return None
        if event == "line":
            passed += 1
            if passed == number:
                os._exit(9)
        return trace

    try:
        sys.settrace(trace)
        call()
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(5)
    os._exit(0)
