"""The version of this distribution, spelled once; the build reads it from here.

A constant and not a look into the installed metadata: that costs a run more than its whole handshake.
"""

VERSION = "0.1.0"
