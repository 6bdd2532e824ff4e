"""Our own data: pins, tags and notes on sessions of every agent.

``facts`` says what one line of the log means, ``book`` reads and writes the log through its gate. The log is the truth;
what the mirror knows of it is a projection made afterwards (issue 6).
"""
