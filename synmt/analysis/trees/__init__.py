"""Which dependency trees does a model induce?"""
