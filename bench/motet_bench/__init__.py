# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark command: finds or installs the implementations, runs the same programs on each in turn, compares."""
