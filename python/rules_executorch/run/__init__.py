"""Executing a program here: answers, parity with eager, speed."""
