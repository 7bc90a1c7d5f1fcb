"""Weights in, `.pte` out: binding to the `.pt2`, calibration, passes, external data, delegation."""
