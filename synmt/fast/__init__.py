"""What makes translation fast: the decoder's step in few operators, and weights that are packed or in int8."""
