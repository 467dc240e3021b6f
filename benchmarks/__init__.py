"""Speed and memory of this project beside what else one could use, measured in one run: `make bench`."""
