"""Forks children one after another that end at once.

usage: forker.py FORKS

Prints how many there were, as JSON.
"""

import json
import os
import sys


def main(forks: int) -> None:
    for _ in range(forks):
        child = os.fork()
        if not child:
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert status == 0
    print(json.dumps({"forks": forks}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
