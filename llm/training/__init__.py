"""Training of draft heads on a target's hidden states. The target itself stays as it is."""
