"""What goes to the caller: a reply being made, its audio, its player, and what of it was heard."""
