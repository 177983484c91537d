"""Packages as `make packages` makes them, and a machine to install them on."""
