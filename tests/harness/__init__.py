# SPDX-License-Identifier: BSD-3-Clause
"""What the tests with real daemons share: the installation, labs, the example programs, programs of other people."""
