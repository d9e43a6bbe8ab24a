"""What is said while somebody learns."""
