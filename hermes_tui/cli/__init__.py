"""Commands without a screen: arguments in, tables or JSON out."""
