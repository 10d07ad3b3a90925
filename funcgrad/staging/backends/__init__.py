"""Backends: what turns a program into something that runs."""
