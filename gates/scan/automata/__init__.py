"""The language of orders: expressions over event names, searched with automata."""
