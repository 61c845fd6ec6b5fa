"""What do damaged trees do to translations?"""
