"""The CPU target: a C++ kernel over the checkpoint's own 4- to 8-bit weights, equal bits at every width."""
