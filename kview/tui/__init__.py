"""The screen: draws views, and nothing else."""
