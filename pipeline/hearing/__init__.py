"""What comes from the caller: microphone and clock, speech and echo in it, what interrupts the agent."""
