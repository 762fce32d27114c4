"""Targets: the engines that run the model whose tokens are committed."""
