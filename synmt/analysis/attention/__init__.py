"""What do attention heads look at?"""
