"""How numbers decide: what error a look may spend, what interval it leaves, and when the machine overrules both."""
