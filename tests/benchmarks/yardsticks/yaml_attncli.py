"""The same YAML file through attncli: prints the seconds, the file's own reading included."""

import sys
import time

import attncli

attncli.load  # noqa: B018 - its import is not what is measured
start = time.perf_counter()
attncli.load(sys.argv[1])
print(time.perf_counter() - start)
