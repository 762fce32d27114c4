"""Carriers on the bench: the other end of each wire, written from the carriers' documentation."""
