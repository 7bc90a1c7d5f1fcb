"""Executing programs on this machine: answers, parity with eager, speed."""
