"""What the screens show, worked out without a screen: frozen values in, lines of clean text out."""
