"""What is said of a program: manifest, report, budget, SBOM, provenance, archive, verification."""
