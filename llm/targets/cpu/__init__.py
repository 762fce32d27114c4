"""The CPU target: a C++ kernel over the checkpoint's own 4- to 8-bit weights, the same bits at every width."""
