"""The three problems of ADBench (arXiv:1807.10129), written as one writes them for Numba, and their derivatives."""
