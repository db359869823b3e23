"""Agents for the durable tests."""
