"""Which target words use syntax?"""
