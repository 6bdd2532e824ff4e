"""One package an agent, behind one protocol."""
