"""Random numbers with Python's integers, for what arrays compute."""

MASK = 2**64 - 1


def scramble(number):
    """Compute the output function of SplitMix64."""
    z = (number + 0x9E3779B97F4A7C15) & MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)
